"""Why a job does not run if the fair order of tenants, or the pause or rate of its own, is the reason."""

import math

from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.views.queues import TenantWait


def tenant_waits(tenant: TenantWait, now: float, due_at: float) -> tuple[str, str, float | None] | None:
    """Why no job of the tenant starts, even after the job is due: a kind, a sentence, and until when."""
    paused_until, rests_until = tenant.paused_until or 0.0, tenant.rests_until or 0.0
    name = _named(tenant.tenant)
    if math.isinf(paused_until):
        return "tenant paused", f"Its tenant {name} is paused until an operator resumes it.", None
    if paused_until > max(due_at, rests_until):
        left = duration(paused_until - now)
        return "tenant paused", f"Its tenant {name} is paused for another {left}.", paused_until
    if rests_until > due_at:
        left = duration(rests_until - now)
        sentence = f"Its tenant {name} has used up its rate. The next job of the tenant may begin in {left}."
        return "tenant rests", sentence, rests_until
    return None


def wait_of_tenant(tenant: TenantWait, suspects: int) -> str:
    """The jobs and tenants that come before a job, in words."""
    waits = []
    if tenant.tenants_ahead:
        others = "tenant is" if tenant.tenants_ahead == 1 else "tenants are"
        waits.append(f"{exact(tenant.tenants_ahead)} other {others} served before its tenant {_named(tenant.tenant)}")
    if tenant.ahead:
        waits.append(f"it waits behind {exact(tenant.ahead)} other{'s' if tenant.ahead > 1 else ''} of its tenant")
    if suspects:
        waits.append(f"{exact(suspects)} suspect{'s' if suspects > 1 else ''} of its shard run first")
    return ", and ".join(waits)


def _named(tenant: str) -> str:
    return f"“{tenant}”" if tenant else "(ids without a colon)"
