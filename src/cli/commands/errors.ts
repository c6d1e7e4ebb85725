/** `agent errors [JOB...]`: the lines of the mirrors that look like errors, in groups of similar ones. */
import type { JobId } from '../../job.ts';
import { countOf } from '../../numbers.ts';
import { printableJson } from '../../printable.ts';
import { type ErrorGroup, errorsIn, groupsOf } from '../../search/errors.ts';
import { type ConfigOption, configurationAsOwner } from '../configuration.ts';
import { harmless, mirrorsOrError, print, reportUnreadable, withExitCodeOfGrep } from './grep.ts';

export interface ErrorsOptions extends ConfigOption {
  readonly json?: boolean;
}

const MAX_SHOWN_CHARACTERS = 200;

export async function errors(jobs: readonly JobId[], options: ErrorsOptions): Promise<void> {
  await withExitCodeOfGrep(async () => {
    const { mirror, errors: settings } = await configurationAsOwner(options);
    let isUnreadable = false;
    const tasks = await errorsIn({
      files: mirrorsOrError(mirror.directory, { jobs }),
      patterns: settings.patterns,
      onUnreadable: (error) => {
        isUnreadable = true;
        reportUnreadable(error);
      },
    });
    const groups = groupsOf(tasks);
    if (options.json === true) await print(`${printableJson({ version: 1, tasks, groups }, 2)}\n`);
    else await print(groups.map(lineOf).join(''));
    if (isUnreadable) return 'failed';
    return tasks.length > 0 ? 'found' : 'nothing';
  });
}

/** `187 tasks: CUDA out of memory (first: 512/515 stderr:8812)` */
function lineOf({ tasks, first: { jobId, taskId, file, line, text } }: ErrorGroup): string {
  const shown = text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
  return `${countOf(tasks, 'task')}: ${harmless(shown)} (first: ${jobId}/${taskId} ${file}:${line})\n`;
}
