"""``notifications/skills/list_changed`` for clients of the stateless era (P5).

There a client names what it wants to hear when it opens ``subscriptions/listen``. For one that asks for
``skillsListChanged`` its stream says so whenever it says that resources changed; of resources themselves it hears
only if it asked for them too. The SDK's own handler does the listening; this translates what it says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp_types import (
    Notification,
    NotificationParams,
    ResourceListChangedNotification,
    SubscriptionsAcknowledgedNotification,
)

from skillwire.server.notifications import SKILLS_LIST_CHANGED

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.session import ServerSession

    from skillwire.server.binding import Context

_SKILLS, _RESOURCES = "skillsListChanged", "resourcesListChanged"


async def listen_for_skills(ctx: Context, call_next: CallNext) -> HandlerResult:
    """A route for ``subscriptions/listen``."""
    wanted = (ctx.params or {}).get("notifications")
    if not isinstance(wanted, dict) or cast("dict[str, Any]", wanted).get(_SKILLS) is not True:
        return await call_next(ctx)
    wanted = cast("dict[str, Any]", wanted)
    session = cast("ServerSession", _Telling(ctx.session, resources=wanted.get(_RESOURCES) is True))
    others = {name: value for name, value in wanted.items() if name != _SKILLS}
    params = {**(ctx.params or {}), "notifications": {**others, _RESOURCES: True}}
    return await call_next(replace(ctx, session=session, params=params))


class _Telling:
    """A session that tells of skills where it was told to tell of resources."""

    def __init__(self, session: ServerSession, *, resources: bool) -> None:
        self._session = session
        self._resources = resources

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """As the session does, in the words that the client asked for."""
        if isinstance(notification, SubscriptionsAcknowledgedNotification):
            notification = self._acknowledged(notification)
        elif isinstance(notification, ResourceListChangedNotification):
            changed: Any = Notification[NotificationParams | None, str](
                method=SKILLS_LIST_CHANGED, params=notification.params
            )
            await self._session.send_notification(changed, related_request_id)
            if not self._resources:
                return
        await self._session.send_notification(notification, related_request_id)

    def _acknowledged(self, notification: SubscriptionsAcknowledgedNotification) -> Any:
        honored: dict[str, Any] = {_SKILLS: True}
        if not self._resources:
            honored["resources_list_changed"] = None
        answered = notification.params.notifications.model_copy(update=honored)
        params = notification.params.model_copy(update={"notifications": answered})
        return notification.model_copy(update={"params": params})
