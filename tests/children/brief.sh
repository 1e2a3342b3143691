#!/bin/sh
# The cheapest child: an answer and its end, without starting anything.
echo '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"ok"}],"usage":{},"stopReason":"stop"}}'
echo '{"type":"agent_end","messages":[],"willRetry":false}'
echo '{"type":"agent_settled","aborted":false}'
