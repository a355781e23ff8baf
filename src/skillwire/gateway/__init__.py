"""The gateway: many servers and folders as one catalog, served by the server of this project, guarded by a policy.

For its upstreams it is a host: it lists, verifies and caches their skills, and asks for approvals. For its clients
it is a server like any other. In between are only catalogs, each around the one before:

    RemoteCatalog         one server: its listing in memory, its bytes verified and cached (``client/remote.py``)
    MaterializedCatalog   snapshots of skills without digests, if the policy selects them
    ApprovalGate          the skills that the policy allows and, in ``admit`` mode, that are approved
    FederatedCatalog      all upstreams, each below its label, with errors that are safe to show to clients

The gateway carries skills only, no tools or prompts of the upstreams.
"""
