#!/usr/bin/env python3
"""Signs one of the Stripe samples in events/ as of now, and prints it:

    scripts/sign-event.py events/http-post-json.json [SECRET] | sam local invoke IngressFunction -e -

The committed samples are signed as of the time that events/README.md states, which is outside every provider's
tolerance by now; tests bring their own clock, a running function has the machine's.
"""

import base64
import hashlib
import hmac
import json
import sys
import time


def sign(event: dict, secret: str, now: int) -> dict:
    body = base64.b64decode(event["body"]) if event["isBase64Encoded"] else event["body"].encode()
    mac = hmac.new(secret.encode(), b"%d.%s" % (now, body), hashlib.sha256).hexdigest()
    for name in event["headers"]:
        if name.lower() == "stripe-signature":
            event["headers"][name] = f"t={now},v1={mac}"
            return event
    sys.exit("sign-event: the event has no Stripe-Signature header")


if __name__ == "__main__":
    path, secret = (sys.argv[1:] + ["whsec_synthetic"])[:2]
    with open(path, encoding="utf-8") as file:
        json.dump(sign(json.load(file), secret, int(time.time())), sys.stdout)
