"""Generated from proto/ by clients/python/generate."""
