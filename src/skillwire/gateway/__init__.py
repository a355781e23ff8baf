"""The gateway: many servers and folders as one catalog, served by the server of this project, guarded by a policy.

Towards the upstreams it is a host: it lists, verifies, keeps what was verified, and asks a person before it serves
what nobody has said yes to. Towards its clients it is a server like any other. In between there are only catalogs,
each around the one before:

    RemoteCatalog          one server: its listing in memory, its bytes verified and cached (``client/remote.py``)
    UpstreamCatalog        the same without the upstream's own words, and with where each skill came from
    MaterializingCatalog   what promises no digests, read whole and served as a snapshot, if the policy says so
    AdmittingCatalog       what the policy lets through, and what a person said yes to
    MappedCatalog          URIs of any scheme as ``skill://``, below the upstream's label (``catalog/mapped.py``)
    FederatedCatalog       all upstreams

It carries skills only. Tools and prompts of the upstreams stay where they are configured.
"""
