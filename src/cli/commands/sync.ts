/** `agent sync JOB`: one complete pass, then exit. */
import { EXIT } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { printableJson } from '../../printable.ts';
import { summaryIsWhole, summaryText } from '../show/pass-summary.ts';
import { passOver } from './complete-pass.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export async function sync(jobId: JobId, options: ConfigOption & { readonly json?: boolean }): Promise<void> {
  const summary = await passOver(await configurationAsOwner(options), { jobId, kind: 'sync' });
  const json = () => `${printableJson({ version: 1, jobId, ...summary })}\n`;
  process.stdout.write(options.json === true ? json() : summaryText(jobId, summary));
  if (!summaryIsWhole(summary)) process.exitCode = EXIT.failed;
}
