/** `agent check`: how results are transferred, and why. Changes nothing: a try would use a temporary key of a job. */
import type { Config } from '../../config/config.ts';
import { canUseSsh, sharesOf } from '../../daemon/transfers.ts';
import { coveringRoot, notCovered, openRoot } from '../../direct/share.ts';
import { asJobtailError } from '../../errors.ts';
import { showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { Store } from '../../store/store.ts';
import { type Finding, note, ok, warning } from './findings.ts';

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
  found.push(note('agent status JOB shows the way of its last results'));
  return [...found, ...(await checkShares(config, store))];
}

/** The configured shares, and those that the service named and the configuration does not allow. */
async function checkShares(config: Config, store: Store | undefined): Promise<Finding[]> {
  const { roots, guarded } = sharesOf(config, process.env);
  const found: Finding[] = [];
  for (const [there, here] of Object.entries(roots))
    found.push(await openRoot(here, guarded).then(() => ok(`${there} is ${here}`), asWarning));
  const last = store?.jobs.all().map(({ jobId }) => store.leases.lastOf(jobId)) ?? [];
  const shares = last.flatMap((lease) => (lease?.protocol === 'NetworkShare' ? [lease.basePath ?? ''] : []));
  for (const basePath of new Set(shares))
    if (basePath !== '' && coveringRoot(basePath, roots) === undefined)
      found.push(asWarning(notCovered(printable(basePath))));
  return found;
}

function asWarning(thrown: unknown): Finding {
  const { message, hint = '' } = asJobtailError(thrown);
  return warning(message, hint);
}
