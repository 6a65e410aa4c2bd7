"""Probes that find out what an endpoint supports by sending requests to it."""
