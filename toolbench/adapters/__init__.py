"""Tools of agent frameworks. Each module of a framework imports that framework, which the caller has installed."""
