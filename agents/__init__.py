"""The agent loop: plain asyncio Python that knows nothing of Django, Channels or Celery."""
