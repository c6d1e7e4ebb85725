/** `agent results JOB`: each result of a job with its path, and whether it is complete. */
import type { JobId } from '../../job.ts';
import { jsonReport } from '../../json-report.ts';
import { showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { withJobs } from '../followed-jobs.ts';
import type { ResultList } from '../show/lists.ts';

export async function results(jobId: JobId, options: JsonOption): Promise<void> {
  const config = await configurationAsOwner(options);
  const list = await withJobs(config, (jobs) => jobs.results(jobId));
  process.stdout.write(options.json === true ? jsonReport(list) : list.results.map(lineOf).join(''));
}

function lineOf({ name, path: file, state, bytes, reason }: ResultList['results'][number]): string {
  const size = bytes === null ? '' : showBytes(bytes);
  const why = reason === null ? '' : `: ${printable(reason)}`;
  return `${state.padEnd(8)}  ${size.padStart(10)}  ${printable(file ?? name)}${why}\n`;
}
