/** `agent sync JOB`: one complete pass, then exit. */
import { EXIT } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { printableJson } from '../../printable.ts';
import { summaryIsWhole, summaryLines } from '../show/pass-summary.ts';
import { passOver } from './complete-pass.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export async function sync(jobId: JobId, options: ConfigOption & { readonly json?: boolean }): Promise<void> {
  const summary = await passOver(await configurationAsOwner(options), { jobId, kind: 'sync' });
  if (options.json === true) process.stdout.write(`${printableJson({ version: 1, jobId, ...summary })}\n`);
  else for (const line of summaryLines(jobId, summary)) process.stdout.write(`${line}\n`);
  if (!summaryIsWhole(summary)) process.exitCode = EXIT.failed;
}
