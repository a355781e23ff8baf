"""How many examples a test tries whose examples take long to make; ``HYPOTHESIS_PROFILE=thorough`` tries more."""

from __future__ import annotations

from hypothesis import settings

FEWER = settings(max_examples=max(20, settings.default.max_examples // 4))
