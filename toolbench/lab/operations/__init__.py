"""Operation of an installation: its problems in words, space on disk, retention of bodies, backups, metrics."""
