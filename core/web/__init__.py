"""`subdeck web`: small pages on which a phone or another desktop answers requests.

The server is a separate program, so it may use asyncio, as the programs for hosts and ACP agents do.
"""
