"""Decides which addresses calls may go to: the internet, and the networks that the operator allows."""

from dataclasses import dataclass

import httpx2

from feeds.fetching.addresses import PORTS, Address, Network, address_of, is_in, is_public
from feeds.fetching.outcome import FetchFailed
from feeds.fetching.targets import port_of


@dataclass(frozen=True)
class Reach:
    # In these networks, all ports are allowed.
    networks: list[Network]
    # For messages: the setting that lists the networks, and what ADE calls in them.
    setting: str
    what: str
    # False: only the listed networks.
    internet: bool = True
    # Whether a refusal may show the resolved address, which can reveal internal addresses.
    names_address: bool = True

    def allows(self, address: Address, port: int) -> bool:
        return is_in(address, self.networks) or (self.internet and port in PORTS and is_public(address))

    def refusal(self, host: str, port: int, address: str = "") -> FetchFailed:
        where = f"The host {host} at {address}" if address and self.names_address else f"The host {host}"
        ports = " or ".join(map(str, PORTS))
        public = f"Use a public address and port {ports}, or add its network to {self.setting}."
        listed = f"Use an address in one of the networks in {self.setting}."
        advice = public if self.internet else listed
        return FetchFailed("refused_address", f"{where}, port {port}, is not allowed for {self.what}. {advice}")

    def expect(self, target: httpx2.URL) -> None:
        """Check the target as far as possible without resolving its name, which happens when the connection is made.
        Raises FetchFailed.
        """
        address, port = address_of(target.raw_host.decode()), port_of(target)
        # A name may resolve to an address in one of the networks, if any are listed.
        possible = self.networks or (self.internet and port in PORTS)
        if not (self.allows(address, port) if address else possible):
            raise self.refusal(str(target.host), port)
