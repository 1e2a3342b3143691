"""The SDK is loaded as the bridge loads it, for which it takes half the time."""

from subdeck.core.acp_bridge import _sdk

_sdk.prepare()
