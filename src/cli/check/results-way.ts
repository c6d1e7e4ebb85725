/** `agent check`: how results are transferred, and why. Changes nothing: a try would use a temporary key of a job. */
import type { Config } from '../../config/config.ts';
import { canUseSsh, sharesOf } from '../../daemon/transfers.ts';
import { coveringRoot, notCovered, openRoot } from '../../direct/share.ts';
import { asJobtailError } from '../../errors.ts';
import { showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { Store } from '../../store/store.ts';
import { type Finding, note, ok, warning } from './findings.ts';

const MAX_NAMED = 3;

export async function checkResultsWay(config: Config, store: Store | undefined): Promise<Finding[]> {
  const { enabled, transfer, directAboveBytes, shareRoots } = config.results;
  if (!enabled) return [note('not fetched (results.enabled: false)')];
  if (transfer === 'soap') return [ok('all of them by the service (results.transfer: soap)')];
  const hasSsh = canUseSsh();
  if (!hasSsh && transfer === 'auto' && Object.keys(shareRoots).length === 0)
    return [
      ok('all of them by the service: ssh and rsync are not both installed here (install them for transfers by SSH)'),
    ];
  const size = showBytes(directAboveBytes);
  const which = transfer === 'direct' ? 'all of them' : `files above ${size} and many at a time`;
  const found = [ok(`${which} by SSH or a mounted share where that works, else by the service`)];
  if (!hasSsh) found.push(note('ssh and rsync are not both installed here'));
  return [...found, ...(store === undefined ? [] : lastWays(store)), ...(await checkShares(config, store))];
}

/** The last transfer of results: program and host, or the reason of the failure. */
function lastWays({ jobs, leases, resultSyncs }: Store): Finding[] {
  const found = new Map<string, Finding>();
  for (const { jobId } of jobs.all().reverse()) {
    const fallback = resultSyncs.get(jobId)?.fallback ?? null;
    const { way, host } = leases.lastOf(jobId) ?? { way: null, host: null };
    if (fallback !== null) {
      const text = `by the service for job ${jobId}: ${printable(fallback)}`;
      found.set(fallback, { mark: 'warning', text });
    } else if (way !== null)
      found.set(`${way} ${host}`, ok(`by ${way} from ${printable(host ?? '')} for job ${jobId}`));
  }
  if (found.size === 0) return [note('no transfer by SSH or a share so far')];
  return [...found.values()].slice(0, MAX_NAMED);
}

/** The configured shares, and those that the service named and the configuration does not allow. */
async function checkShares(config: Config, store: Store | undefined): Promise<Finding[]> {
  const { roots, guarded } = sharesOf(config, process.env);
  const found: Finding[] = [];
  for (const [there, here] of Object.entries(roots)) {
    const finding = await openRoot(here, guarded).then(() => ok(`${there} is ${here}`), asWarning);
    found.push(finding);
  }
  for (const basePath of store === undefined ? [] : namedBy(store)) {
    if (coveringRoot(basePath, roots) === undefined) found.push(asWarning(notCovered(printable(basePath))));
  }
  return found;
}

function namedBy({ jobs, leases }: Store): Set<string> {
  const last = jobs.all().map(({ jobId }) => leases.lastOf(jobId));
  const shares = last.filter((lease) => lease?.protocol === 'NetworkShare').map((lease) => lease?.basePath ?? '');
  return new Set(shares.filter((basePath) => basePath !== ''));
}

function asWarning(thrown: unknown): Finding {
  const { message, hint = '' } = asJobtailError(thrown);
  return warning(message, hint);
}
