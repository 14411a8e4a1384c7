"""A plugin of pytest: pytest-httpbin starts no servers, its fixtures lead to those that the run has
started.

SUITES_HTTP_PORT, SUITES_HTTPS_PORT and SUITES_CA say where they are. Only tests that ask a server
are run.

Names of header fields are case-insensitive (RFC 9110, 5.1). Gateways send them in lower case, as
HTTP/2 does, and many tests of httpie look for `Content-Type:` in a text. So the client capitalises
the names that it receives. The page of the suites says so.
"""

import http.client
import os

from pytest_httpbin import certs, serve


parse_headers = http.client.parse_headers


def parse_headers_capitalised(*args, **kwargs):
    message = parse_headers(*args, **kwargs)
    fields = message.items()
    for name in set(name for name, _ in fields):
        del message[name]
    for name, value in fields:
        message.add_header("-".join(word.capitalize() for word in name.split("-")), value)
    return message


http.client.parse_headers = parse_headers_capitalised


class Elsewhere(serve.Server):
    protocol = "http"
    host = "127.0.0.1"

    def __init__(self, **_):
        self.port = int(os.environ["SUITES_%s_PORT" % self.protocol.upper()])

    def start(self):
        pass

    def stop(self):
        pass

    def __exit__(self, *_):
        pass


class ElsewhereSecure(Elsewhere):
    protocol = "https"


serve.Server = Elsewhere
serve.SecureServer = ElsewhereSecure
certs.where = lambda: os.environ["SUITES_CA"]

ASKING = {"httpbin", "httpbin_secure", "httpbin_both", "httpbin_secure_untrusted"}


def pytest_collection_modifyitems(config, items):
    asking = [item for item in items if ASKING & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=[item for item in items if item not in asking])
    items[:] = asking
