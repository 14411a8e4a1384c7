"""A plugin of pytest: pytest-httpbin starts no servers, its fixtures lead to those that the run has started.

SUITES_HTTP_PORT, SUITES_HTTPS_PORT and SUITES_CA say where they are. Only tests that ask a server are run.
"""

import os

from pytest_httpbin import certs, serve


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
