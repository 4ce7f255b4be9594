"""Where a request goes: the address of the endpoint below the base URL, by the ways of the provider."""

import re
from urllib.parse import quote

import httpx

from agents.providers.http import endpoint
from agents.providers.profiles import Profile

CHAT_PATH = "/chat/completions"
RESPONSES_PATH = "/responses"
MESSAGES_PATH = "/messages"
_PATHS = {"chat": CHAT_PATH, "responses": RESPONSES_PATH, "messages": MESSAGES_PATH}
# The newest version that is generally available; a version in the address counts before it.
AZURE_VERSION = "2024-10-21"
_AZURE_V1 = re.compile(r"/openai/v1$")
_AZURE_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+$")


def place(profile: Profile, base: httpx.URL, model: str) -> httpx.URL:
    """The endpoint of a model. A base URL that already ends in the path is taken as it is."""
    path = _PATHS[profile.wire]
    if not profile.placed:
        return endpoint(base, path)
    below = base.path.rstrip("/").removesuffix(path)
    if _AZURE_DEPLOYMENT.search(below):
        return _versioned(endpoint(base.copy_with(path=below), path))
    if _AZURE_V1.search(below) or "api-version" not in base.params:
        if not below.removesuffix("/openai"):
            below = "/openai/v1"
        return endpoint(base.copy_with(path=below), path)
    # An address with a version and without a deployment means the older path; the model names the deployment.
    if profile.wire == "responses":
        return endpoint(base.copy_with(path=below.removesuffix("/openai") + "/openai"), path)
    return endpoint(
        base.copy_with(path=f"{below.removesuffix('/openai')}/openai/deployments/{quote(model, safe='')}"), path
    )


def _versioned(url: httpx.URL) -> httpx.URL:
    return url if "api-version" in url.params else url.copy_merge_params({"api-version": AZURE_VERSION})
