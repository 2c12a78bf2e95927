"""TLS in front of a server that speaks none."""

import ssl
import tempfile
from pathlib import Path

import trustme

from lowkiq_lambda.stack.cloud import reaper
from tests.kit.servers.proxy import HasAddress, Proxy


class TlsProxy(Proxy):
    """Ends TLS with a certificate for `names`, issued by an authority that only `ca_path` knows."""

    def __init__(
        self, target: HasAddress | tuple[str, int], *, names: tuple[str, ...] = ("localhost", "127.0.0.1")
    ) -> None:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*names).configure_cert(context)
        super().__init__(target, tls=context)
        self._folder = tempfile.TemporaryDirectory(prefix="lowkiq-tls-")
        reaper.watch_folder(Path(self._folder.name))
        self.ca_path = Path(self._folder.name) / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca_path))

    @property
    def bare_url(self) -> str:
        """A URL without the authority: its certificate is not trusted."""
        return f"rediss://localhost:{self.port}/0"

    @property
    def url(self) -> str:
        """What a client is given."""
        return f"{self.bare_url}?ssl_ca_certs={self.ca_path}"

    def close(self) -> None:
        """Cut all connections, stop listening, remove the authority."""
        super().close()
        self._folder.cleanup()
        reaper.forget_folder(Path(self._folder.name))
