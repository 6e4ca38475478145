"""A certificate authority for the tests, which signs certificates for hosts on this machine."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from feeds.fetching.network import new_trust

DAY = timedelta(days=1)


class Authority:
    def __init__(self, directory):
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = named("The tests")
        builder = self._builder(self._name, self._key, datetime.now(UTC) + DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    def trust(self):
        """Return the TLS context of a client that trusts only this authority."""
        trust = new_trust()
        trust.load_verify_locations(cadata=self._certificate.public_bytes(serialization.Encoding.PEM).decode())
        return trust

    def context(self, *hosts, until=None):
        """Return the TLS context of a server with a certificate for these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(named(hosts[0]), key, until or datetime.now(UTC) + DAY)
        builder = builder.add_extension(x509.SubjectAlternativeName([known_as(host) for host in hosts]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        file = self._directory / f"{hosts[0]}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, subject, key, until):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(until - 2 * DAY).not_valid_after(until)


def named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def known_as(host):
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
