/** The state of a job, said once each time it changes: beside the lines of the job, not among them. */
import { type JobInformation, phaseOf } from '../../job-information.ts';
import { printable } from '../../printable.ts';
import type { JobInformationRow } from '../../store/rows.ts';
import { taskFields } from './told-report.ts';
import { hasMessage, taskLine } from './told-text.ts';

/** Tasks whose messages are said. */
const MOST_MESSAGES = 5;

export class JobStateChanges {
  #said: string | null = null;

  /** Lines that say what is new since the last look; none if it is the same, or nothing was ever told. */
  look(row: JobInformationRow | undefined): string {
    const information = row?.information;
    if (information === undefined || information.state === null || information.state === this.#said) return '';
    this.#said = information.state;
    return [lineOf(information), ...messagesOf(information)].map((line) => `${line}\n`).join('');
  }
}

function lineOf({ id, state }: JobInformation): string {
  const late = phaseOf(state) === 'over' ? '; what it wrote last may still come' : '';
  return `job ${id} is ${printable(state ?? '')}${late}`;
}

/** Why its tasks failed, once it is over. */
function messagesOf({ state, tasks }: JobInformation): string[] {
  if (phaseOf(state) !== 'over') return [];
  const failed = tasks.filter(({ errorMessage }) => hasMessage(errorMessage));
  return failed.slice(0, MOST_MESSAGES).map((task) => `  ${taskLine(taskFields(task))}`);
}
