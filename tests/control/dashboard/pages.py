"""Getting a page as a browser without scripts gets it."""

from django.test import Client


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content[:500]
    return answer.content.decode()
