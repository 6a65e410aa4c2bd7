"""Anthropic's Messages API, converted to and from OpenAI's chat format."""
