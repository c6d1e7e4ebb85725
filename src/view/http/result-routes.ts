/** The results of a job as a tree. */

import { get, type HttpRoute } from '../../http/app.ts';
import { notThere, Refused } from '../../http/refused.ts';
import type { JobId } from '../../job.ts';
import type { LevelEntry } from '../../store/results.ts';
import type { ResultRow } from '../../store/rows.ts';
import { liveFileOf } from '../content/contents.ts';
import { previewKindOf } from '../content/file-types.ts';
import type { ResultDirectory, ResultEntries, ResultFile } from '../contract/addresses.ts';
import type { ViewParts } from '../parts.ts';
import { Query } from './query.ts';

const MAX_ENTRIES = 500;

export function resultRoutes(parts: ViewParts): readonly HttpRoute[] {
  return [
    get('/api/results', (context) => {
      const query = new Query(context.req.url);
      const jobId = query.job();
      const name = query.text('name');
      if (name !== undefined) {
        const row = parts.stores.of(jobId).results.get(jobId, name);
        if (row === undefined) throw notThere('result of this name');
        return context.json({ entries: [fileEntry(parts, row)], more: false });
      }
      // '' for the top.
      const under = query.text('under') ?? '';
      if (under !== '' && !under.endsWith('/')) throw new Refused(400, 'a directory ends in a slash');
      return context.json(entriesOf(parts, jobId, under, query.text('after') ?? ''));
    }),
  ];
}

function entriesOf(parts: ViewParts, jobId: JobId, under: string, after: string): ResultEntries {
  const { results } = parts.stores.of(jobId);
  const found = results.level(jobId, { under, after, max: MAX_ENTRIES + 1 });
  const byName = new Map<string, LevelEntry[]>();
  for (const entry of found) byName.set(entry.name, [...(byName.get(entry.name) ?? []), entry]);
  // Names that begin with a slash have nothing before it to be looked at.
  if (byName.size === 1 && byName.has(`${under}/`) && after === '') return entriesOf(parts, jobId, `${under}/`, after);
  const names = [...byName].slice(0, MAX_ENTRIES);
  // The directory of a task has the number of its specification: the live files in it name the task.
  const liveFiles = parts.stores.of(jobId).liveFiles.ofJob(jobId);
  const taskOf = (directory: string) => {
    const tasks = new Set(liveFiles.filter((one) => one.listedName?.startsWith(directory)).map((one) => one.taskId));
    return tasks.size === 1 ? ([...tasks][0] ?? null) : null;
  };
  const entries = names.map(([name, rows]) => {
    const row = rows[0]?.isDirectory === 1 ? undefined : results.get(jobId, name);
    return row === undefined ? directoryEntry(name, rows, taskOf(name)) : fileEntry(parts, row);
  });
  return { entries, more: byName.size > MAX_ENTRIES };
}

function directoryEntry(name: string, rows: readonly LevelEntry[], task: string | null): ResultDirectory {
  return {
    kind: 'directory',
    name,
    task,
    files: rows.reduce((sum, { files }) => sum + files, 0),
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
    states: Object.fromEntries(rows.map(({ state, files }) => [state, files])),
  };
}

function fileEntry({ stores }: ViewParts, { jobId, name, state, reason, sha256, fetchedAt, live, ...row }: ResultRow) {
  // A link is as long as its live file.
  const key = live === null ? undefined : liveFileOf(live);
  const bytes = key === undefined ? row.bytes : (stores.of(jobId).liveFiles.get(jobId, key)?.position ?? null);
  const entry = { name, state, reason, bytes, sha256, fetchedAt, live, preview: previewKindOf(name) };
  return { kind: 'file', ...entry } satisfies ResultFile;
}
