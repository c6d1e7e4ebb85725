/** The rules of the configuration: the events that each takes, and their deliveries. */

import { createHash, randomUUID } from 'node:crypto';
import { patterned } from '../agent/patterns.ts';
import type { Config } from '../config/config.ts';
import type { JobId } from '../job.ts';
import type { NotifyEvent } from '../notification.ts';
import type { DeliveryRow } from '../store/outbox.ts';
import type { LiveFileRow } from '../store/rows.ts';
import { type EventOf, newEvent } from './events.ts';

export type RuleSettings = Config['notify'][number];

export class Rule {
  readonly settings: RuleSettings;
  /** Stable over restarts. */
  readonly id: string;
  /** For people; without the path of an address, which may be a secret. */
  readonly target: string;
  readonly #takesJob: (name: string) => boolean;
  readonly #takesFile: (name: string) => boolean;

  constructor(settings: RuleSettings) {
    this.settings = settings;
    // A key that a former version did not have changes no rule.
    const isNew = (key: string) => key === 'proxy' || key === 'caFile';
    const text = JSON.stringify(settings, (key, value: unknown) => (isNew(key) && value === null ? undefined : value));
    this.id = createHash('sha256').update(text).digest('hex').slice(0, 16);
    this.target = targetOf(settings);
    this.#takesJob = patterned(settings.jobs);
    this.#takesFile = patterned(settings.files);
  }

  get wantsFiles(): boolean {
    return this.settings.on.some((type) => type === 'truncated' || type === 'rewritten' || type === 'match');
  }

  takes({ type, jobId, jobName, file }: NotifyEvent): boolean {
    if (type === 'test') return true;
    const isOfJob = jobId === undefined || this.#takesJob(jobId) || this.#takesJob(jobName ?? '');
    return this.settings.on.includes(type) && isOfJob && (file === undefined || this.#takesFile(file));
  }

  /** Whether only the name of its job shows whether it takes events of a live file. */
  needsName({ jobId, file }: LiveFileRow): boolean {
    return this.wantsFiles && this.#takesFile(file) && !this.#takesJob(jobId);
  }

  readsFile(about: EventOf): boolean {
    return this.takes(newEvent('match', 0, about));
  }
}

function targetOf({ command, url, mail }: RuleSettings): string {
  if (command !== null) return `command ${command[0]}`;
  if (url !== null) return `url ${new URL(url).origin}`;
  return `mail ${mail}`;
}

export function deliveryOf({ id: rule }: Rule, event: NotifyEvent, now: number): DeliveryRow {
  const { jobId } = event;
  const at = { madeAt: now, dueAt: now, attempts: 0, lastError: null };
  return { deliveryId: randomUUID(), jobId: (jobId as JobId | undefined) ?? null, rule, event, ...at };
}

/** One for each rule that takes the event. */
export const deliveriesOf = (rules: readonly Rule[], events: readonly NotifyEvent[], now: number): DeliveryRow[] =>
  events.flatMap((event) => rules.filter((rule) => rule.takes(event)).map((rule) => deliveryOf(rule, event, now)));
