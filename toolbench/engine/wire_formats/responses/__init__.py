"""OpenAI's Responses API, converted to and from OpenAI's chat format."""
