/** What one look at a job's results has to do: the listing held against the ledger, in one go over both. */
import path from 'node:path';
import { keyText } from '../../job.ts';
import type { LiveFileRow, ResultRow } from '../../store/rows.ts';
import { judgeNames, type Patterns, type Verdict } from './listing.ts';
import type { LiveLinks } from './live-links.ts';

/** A result that is to be fetched. */
export interface DueResult {
  readonly row: ResultRow;
  /** Its path below `results/`. */
  readonly parts: readonly string[];
  readonly target: string;
}

/** A result that is proven to be a live file, without fetching it. */
export interface ProvenLink extends DueResult {
  readonly live: LiveFileRow;
}

export interface Plan {
  /** Rows that are new or changed by the listing or the configuration alone. */
  readonly changed: readonly ResultRow[];
  /** Those of them that are refused from now on. */
  readonly refused: readonly ResultRow[];
  readonly due: readonly DueResult[];
  readonly links: readonly ProvenLink[];
}

export interface PlanOptions {
  readonly jobId: ResultRow['jobId'];
  readonly listed: readonly string[];
  /** The ledger, by name. */
  readonly rows: ReadonlyMap<string, ResultRow>;
  readonly links: LiveLinks;
  readonly patterns: Patterns;
  readonly foldsCase: boolean;
  /** `results/` of the job. */
  readonly directory: string;
  readonly intervalMs: number;
  readonly final: boolean;
  readonly now: number;
}

/** Live files that a reason names. */
const MOST_NAMED = 3;

export function planLook(options: PlanOptions): Plan {
  const { listed, rows, patterns, foldsCase } = options;
  const changed: ResultRow[] = [];
  const refused: ResultRow[] = [];
  const due: DueResult[] = [];
  const links: ProvenLink[] = [];
  // Of names that get in each other's way, the one that was there first stays.
  const first = listed.filter((name) => rows.has(name) && rows.get(name)?.state !== 'refused');
  for (const [name, verdict] of judgeNames([...first, ...listed], { ...patterns, foldsCase })) {
    const before = rows.get(name);
    const row = rowFor(name, before, verdict, options);
    if (row !== before) changed.push(row);
    if (row !== before && row.state === 'refused') refused.push(row);
    if (verdict.kind !== 'fetch') continue;
    const result = { row, parts: verdict.parts, target: path.join(options.directory, ...verdict.parts) };
    const live = options.links.proven(row, verdict.parts, options.final);
    if (live !== undefined) {
      if (row.state !== 'linked' || row.live !== keyText(live)) links.push({ ...result, live });
    } else if (isDue(row, options)) due.push(result);
  }
  return { changed, refused, due: bestProofFirst(due, options.links), links };
}

function rowFor(name: string, before: ResultRow | undefined, verdict: Verdict, options: PlanOptions): ResultRow {
  const { jobId, intervalMs, now } = options;
  const fresh = { jobId, name, bytes: null, sha256: null, live: null, listedAt: now, fetchedAt: null };
  const row: ResultRow = before ?? { ...fresh, state: 'listed', reason: null, dueAt: now, intervalMs };
  if (verdict.kind !== 'fetch') {
    const { kind: state, reason } = verdict;
    return before?.state === state && before.reason === reason ? before : { ...row, state, reason };
  }
  const isAllowedNow = row.state === 'refused' || (row.state === 'left-out' && !isLeftOutBySize(row));
  if (isAllowedNow) return { ...row, state: 'listed', reason: null, dueAt: now, intervalMs };
  const live = before === undefined ? options.links.candidates(verdict.parts) : [];
  if (live.length === 0) return row;
  // Its mirror is on its way already; fetched a little later, the file is proof, and no second copy.
  return { ...row, reason: waitsForProof(live.map(keyText)), dueAt: now + intervalMs };
}

/** A listed path names no task (field notes 4), so with several tasks it could be the file of any of them. */
function waitsForProof([only = '', ...others]: readonly string[]): string {
  if (others.length === 0) return `waits for the proof that it is the live file ${only}`;
  const more = others.length < MOST_NAMED ? '' : `, and ${others.length + 1 - MOST_NAMED} more`;
  const named = [only, ...others].slice(0, MOST_NAMED).join(', ');
  return `waits for the proof which live file it is: ${named}${more}`;
}

/** Left out by what it is, not by its name: tried again when it is due. */
function isLeftOutBySize({ reason }: ResultRow): boolean {
  return reason !== null && !reason.startsWith('results.');
}

function isDue(row: ResultRow, { final, now }: PlanOptions): boolean {
  // Further away than its interval: the clock was set back since.
  if (row.dueAt <= now || row.dueAt > now + row.intervalMs) return true;
  return final && !(row.state === 'left-out' && row.reason?.startsWith(TOO_LARGE) === true);
}

/** How the reason begins for a file beyond `results.maxFileBytes`. */
export const TOO_LARGE = 'larger than results.maxFileBytes';

/** Live files with much content come first: what they prove helps to tell the others apart. */
function bestProofFirst(due: readonly DueResult[], links: LiveLinks): DueResult[] {
  const weight = ({ parts }: DueResult) => Math.max(-1, ...links.candidates(parts).map(({ position }) => position));
  const weighed = due.map((result) => ({ result, weight: weight(result) }));
  return weighed.sort((a, b) => b.weight - a.weight).map(({ result }) => result);
}
