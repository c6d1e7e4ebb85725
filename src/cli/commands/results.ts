/** `agent results JOB`: each result of a job with its path, and whether it is complete. */
import path from 'node:path';
import type { Config } from '../../config/config.ts';
import { requireWatched } from '../../daemon/state.ts';
import { type JobId, keyText } from '../../job.ts';
import { showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { resultPath, resultsParts } from '../../safe-names.ts';
import type { ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { readJobs } from '../followed-jobs.ts';
import { jsonReport } from '../show/json.ts';

export async function results(jobId: JobId, options: JsonOption): Promise<void> {
  const config = await configurationAsOwner(options);
  await readJobs(config, jobId, (store) => show(config, store, jobId, options.json === true));
}

function show(config: Config, store: Store, jobId: JobId, isJson: boolean): void {
  const state = requireWatched(store, jobId);
  const directory = path.join(config.mirror.directory, ...resultsParts(jobId));
  // A link is as long as its live file.
  const lengths = new Map(store.liveFiles.ofJob(jobId).map((live) => [keyText(live), live.position]));
  const rows = [...store.results.ofJob(jobId)].map((row) =>
    shownResult(directory, row.live === null ? row : { ...row, bytes: lengths.get(row.live) ?? null }),
  );
  if (isJson) process.stdout.write(jsonReport({ jobId, state, results: rows }));
  else process.stdout.write(rows.map(lineOf).join(''));
}

/** Complete: the file here has all bytes that the server had when it was fetched. */
function shownResult(directory: string, { name, state, reason, bytes, sha256, fetchedAt, listedAt }: ResultRow) {
  const found = resultPath(name);
  const file = 'refused' in found ? null : path.resolve(directory, ...found.parts);
  const complete = state === 'synced' || state === 'linked';
  return { name, path: file, complete, state, bytes, sha256, fetchedAt, listedAt, reason };
}

function lineOf({ name, path: file, state, bytes, reason }: ReturnType<typeof shownResult>): string {
  const size = bytes === null ? '' : showBytes(bytes);
  const why = reason === null ? '' : `: ${printable(reason)}`;
  return `${state.padEnd(8)}  ${size.padStart(10)}  ${printable(file ?? name)}${why}\n`;
}
