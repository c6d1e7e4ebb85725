/** The rules of the configuration: the events of each, and the lines that its pattern matches. */
import { createHash } from 'node:crypto';
import vm from 'node:vm';
import { patterned } from '../agent/patterns.ts';
import type { Config } from '../config/config.ts';
import { MAX_LINE_CHARACTERS, type NotifyEvent } from '../notification.ts';
import { withinProcessorTime } from '../system/clock.ts';

export type RuleSettings = Config['notify'][number];

/** Processor time for the lines of one piece of a file. */
const MATCH_MS = 250;

export class Rule {
  readonly settings: RuleSettings;
  /** Stable over restarts. */
  readonly id: string;
  /** For people; without the path of an address, which may be a secret. */
  readonly target: string;
  readonly #takesJob: (name: string) => boolean;
  readonly #takesFile: (name: string) => boolean;
  readonly #matches: ((lines: readonly string[]) => number[]) | undefined;

  constructor(settings: RuleSettings) {
    this.settings = settings;
    this.id = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 16);
    this.target = targetOf(settings);
    this.#takesJob = patterned(settings.jobs);
    this.#takesFile = patterned(settings.files);
    this.#matches = settings.match === null ? undefined : matcher(settings.match);
  }

  get wantsFiles(): boolean {
    return this.settings.on.some((type) => type === 'truncated' || type === 'rewritten' || type === 'match');
  }

  get wantsLines(): boolean {
    return this.#matches !== undefined && this.settings.on.includes('match');
  }

  takes({ type, jobId, jobName, file }: NotifyEvent): boolean {
    if (type === 'test') return true;
    const names = [jobId, jobName].filter((name) => name !== undefined && name !== '');
    const isOfJob = jobId === undefined || names.some((name) => this.#takesJob(name ?? ''));
    return this.settings.on.includes(type) && isOfJob && (file === undefined || this.#takesFile(file));
  }

  readsFile(jobId: string, jobName: string | undefined, file: string): boolean {
    return (
      this.wantsLines &&
      this.#takesFile(file) &&
      (this.#takesJob(jobId) || (jobName !== undefined && jobName !== '' && this.#takesJob(jobName)))
    );
  }

  /** The indexes of matching lines; undefined if the pattern takes too long. */
  matching(lines: readonly string[]): number[] | undefined {
    const cut = lines.map((line) => (line.length > MAX_LINE_CHARACTERS ? line.slice(0, MAX_LINE_CHARACTERS) : line));
    return withinProcessorTime(MATCH_MS, () => this.#matches?.(cut) ?? []);
  }
}

/** In another realm, where a slow pattern can be stopped. */
function matcher(pattern: string): (lines: readonly string[]) => number[] {
  const context = vm.createContext({ pattern });
  vm.runInContext('const expression = new RegExp(pattern)', context);
  const script = new vm.Script('lines.flatMap((line, index) => (expression.test(line) ? [index] : []))');
  return (lines) => {
    context['lines'] = lines;
    return script.runInContext(context, { timeout: MATCH_MS }) as number[];
  };
}

function targetOf({ command, url, mail }: RuleSettings): string {
  if (command !== null) return `command ${command[0]}`;
  if (url !== null) return `url ${new URL(url).origin}`;
  return `mail ${mail}`;
}
