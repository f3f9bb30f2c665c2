#!/usr/bin/env python3
"""Signs one of the samples in events/ as of now, and prints it:

    scripts/sign-event.py events/http-post-json.json [SECRET] | sam local invoke IngressFunction -e -

The committed samples are signed as of the time that events/README.md states, which is outside every provider's
tolerance by now; tests bring their own clock, a running function has the machine's. Stripe's and Slack's are known; the
secret is the one of the samples unless another is given.
"""

import base64
import hashlib
import hmac
import json
import sys
import time


def stripe(body: bytes, secret: str, now: int) -> dict[str, str]:
    return {"stripe-signature": f"t={now},v1={mac(secret, b'%d.%s' % (now, body))}"}


def slack(body: bytes, secret: str, now: int) -> dict[str, str]:
    return {"x-slack-signature": f"v0={mac(secret, b'v0:%d:%s' % (now, body))}", "x-slack-request-timestamp": str(now)}


SIGNERS = {
    "stripe-signature": (stripe, "whsec_synthetic"),
    "x-slack-signature": (slack, "synthetic_slack_signing_secret"),
}


def mac(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def sign(event: dict, secret: str | None, now: int) -> dict:
    text = event.get("body", "")
    body = base64.b64decode(text) if event["isBase64Encoded"] else text.encode()
    names = {name.lower(): name for name in event["headers"]}
    for header, (signer, synthetic) in SIGNERS.items():
        if header in names:
            for name, value in signer(body, secret or synthetic, now).items():
                event["headers"][names[name]] = value
            return event
    sys.exit("sign-event: the event has neither a Stripe-Signature nor an X-Slack-Signature header")


if __name__ == "__main__":
    path, secret = (sys.argv[1:] + [None])[:2]
    with open(path, encoding="utf-8") as file:
        json.dump(sign(json.load(file), secret, int(time.time())), sys.stdout)
