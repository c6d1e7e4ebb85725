/** `agent check`: which mounted shares the service may name, and which it named. Changes nothing. */

import type { Config } from '../../config/config.ts';
import { sharesOf } from '../../daemon/transfers.ts';
import { coveringRoot, notCovered, openRoot } from '../../direct/share.ts';
import { asJobtailError } from '../../errors.ts';
import { printable } from '../../printable.ts';
import type { Store } from '../../store/store.ts';
import { type Finding, note, ok, warning } from './findings.ts';

export async function checkShares(config: Config, store: Store | undefined): Promise<Finding[]> {
  const { roots, guarded } = sharesOf(config, process.env);
  const found: Finding[] = [];
  for (const [there, here] of Object.entries(roots)) {
    const finding = await openRoot(here, guarded).then(() => ok(`${there} is ${here}`), asWarning);
    found.push(finding);
  }
  if (found.length === 0)
    found.push(note('none in results.shareRoots: what a service offers by a share comes by SOAP'));
  for (const basePath of store === undefined ? [] : namedBy(store)) {
    if (coveringRoot(basePath, roots) === undefined) found.push(asWarning(notCovered(printable(basePath))));
  }
  return found;
}

/** The shares that the service named last for each job. */
function namedBy({ jobs, leases }: Store): Set<string> {
  const last = jobs.all().map(({ jobId }) => leases.lastOf(jobId));
  const shares = last.filter((lease) => lease?.protocol === 'NetworkShare').map((lease) => lease?.basePath ?? '');
  return new Set(shares.filter((basePath) => basePath !== ''));
}

function asWarning(thrown: unknown): Finding {
  const { message, hint = '' } = asJobtailError(thrown);
  return warning(message, hint);
}
