/** The events of the server as signals. Each tab has one stream, for what it shows; a hidden tab closes it. */
import { computed, effect, type Signal, signal } from '@preact/signals';
import { nominalPause } from '../../back-off.ts';
import type {
  AgentState,
  EventLine,
  Events,
  Figure,
  FileLength,
  FileState,
  FleetState,
  JobDetail,
  JobSummary,
  ServiceState,
  StreamTopics,
} from '../contract/events.ts';
import { address, askLines, pause, RefusedByView } from './api.ts';
import { type ConnectionState, conditionOf } from './condition.ts';
import { canGoOn, isProven, onEntry } from './session.ts';

const UNPROVEN = 'what answers at this address has not proven to be the view';
const RECONNECTS = { firstMs: 250, maxMs: 5_000 };
/** The server sends something each 15 seconds: a stream that is silent for longer has no connection any more. */
const MAX_SILENCE_MS = 40_000;
/** Of two hours. */
const MAX_FIGURES = 1_440;

class Live {
  readonly connection: Signal<ConnectionState> = signal('connecting');
  readonly agent = signal<AgentState | undefined>(undefined);
  /** Undefined without a fleet. */
  readonly fleet = signal<FleetState | undefined>(undefined);
  readonly jobs = signal<ReadonlyMap<string, JobSummary> | undefined>(undefined);
  readonly details = signal<ReadonlyMap<string, JobDetail>>(new Map());
  /** Jobs that were requested, and never followed. */
  readonly missing = signal<ReadonlySet<string>>(new Set());
  readonly files = signal<ReadonlyMap<string, readonly FileState[]>>(new Map());
  readonly service = signal<ServiceState | undefined>(undefined);
  /** Of the agent, the oldest first; null where the view does not run within it. */
  readonly figures = signal<readonly Figure[] | null | undefined>(undefined);
  readonly stateError = signal<Events['stateError']>(null);
  readonly #lostAt = signal<number | null>(null);
  /** Why there is no access, or no stream, in the words of the server. */
  readonly #refusal = signal('');
  /** Whether the shown data are current. */
  readonly condition = computed(() =>
    conditionOf({
      connection: this.connection.value,
      lostAt: this.#lostAt.value,
      refusal: this.#refusal.value,
      agent: this.agent.value,
      fleet: this.fleet.value,
      stateError: this.stateError.value,
    }),
  );
  /** The server's clock, each second. */
  readonly now = signal(Date.now());
  readonly #topics = signal<StreamTopics>({});
  readonly #lengths = new Map<string, Set<(length: FileLength) => void>>();
  readonly #watchedFiles = signal<readonly string[]>([]);
  readonly #isHidden = signal(document.hidden);
  #clockAhead = 0;
  #program: string | undefined;
  #failures = 0;

  /** Begins to listen; nothing is asked before. */
  start(): void {
    document.addEventListener('visibilitychange', () => {
      this.#isHidden.value = document.hidden;
    });
    setInterval(() => {
      if (!document.hidden) this.now.value = Date.now() + this.#clockAhead;
    }, 1000);
    const wanted = computed(() =>
      this.#isHidden.value ? undefined : address('events', { ...this.#topics.value, file: this.#watchedFiles.value }),
    );
    const attempt = signal(0);
    onEntry(() => {
      if (this.connection.value === 'refused') attempt.value++;
    });
    effect(() => {
      const to = wanted.value;
      void attempt.value;
      return to === undefined ? undefined : this.#listen(to, () => attempt.value++);
    });
  }

  /** Sets the topics that the page shows besides live files. */
  subscribe(topics: StreamTopics): void {
    this.#topics.value = topics;
  }

  /** Reports the length of a live file at each change, until the returned function is called. */
  watchFile(file: string, reported: (length: FileLength) => void): () => void {
    const listeners = this.#lengths.get(file) ?? new Set();
    this.#lengths.set(file, listeners.add(reported));
    this.#watchedFiles.value = [...this.#lengths.keys()].sort();
    return () => {
      listeners.delete(reported);
      if (listeners.size === 0) this.#lengths.delete(file);
      this.#watchedFiles.value = [...this.#lengths.keys()].sort();
    };
  }

  /** Opens the stream; what is returned closes it. `again` is called when it broke. */
  #listen(to: string, again: () => void): () => void {
    const [over, silence] = [new AbortController(), new AbortController()];
    const { signal } = over;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
    };
    const read = async () => {
      // What answers after a break may be another process.
      if (this.#failures > 0 && canGoOn() && !(await isProven())) throw new RefusedByView(401, { message: UNPROVEN });
      wait();
      const lines = askLines<EventLine>(to, AbortSignal.any([signal, silence.signal]), wait);
      for await (const [name, data] of lines) this.#taken[name]?.(data as never);
    };
    const goOn = async (error?: unknown) => {
      clearTimeout(timer);
      if (signal.aborted) return;
      const refusal = error instanceof RefusedByView ? error : undefined;
      const isRefused = refusal?.status === 401;
      this.#lostAt.value ??= this.now.value;
      this.#refusal.value = refusal?.message ?? '';
      this.connection.value = isRefused ? 'refused' : 'lost';
      if (isRefused && !canGoOn()) return;
      this.#failures++;
      await pause(nominalPause(this.#failures, RECONNECTS), signal);
      if (!signal.aborted) again();
    };
    read().then(goOn, goOn);
    return () => over.abort();
  }

  readonly #taken: { readonly [Name in keyof Events]: (data: Events[Name]) => void } = {
    hello: ({ program, now }) => {
      // A page of another version of the program might misread what comes.
      if (this.#program !== undefined && this.#program !== program) location.reload();
      this.#program = program;
      this.#failures = 0;
      this.#clockAhead = now - Date.now();
      this.now.value = now;
      this.connection.value = 'open';
      this.#lostAt.value = null;
    },
    jobs: ({ whole, jobs }) => {
      const all = new Map(whole ? [] : (this.jobs.value ?? []));
      for (const job of jobs) all.set(job.jobId, job);
      this.jobs.value = all;
    },
    job: (job) => {
      this.details.value = new Map(this.details.value).set(job.jobId, job);
      this.missing.value = new Set([...this.missing.value].filter((jobId) => jobId !== job.jobId));
    },
    missing: ({ jobId }) => {
      this.missing.value = new Set(this.missing.value).add(jobId);
    },
    files: ({ jobId, whole, files }) => {
      const all = new Map((whole ? [] : (this.files.value.get(jobId) ?? [])).map((one) => [nameOf(one), one]));
      for (const file of files) all.set(nameOf(file), file);
      this.files.value = new Map(this.files.value).set(jobId, [...all.values()]);
    },
    length: (length) => {
      for (const reported of this.#lengths.get(length.file) ?? []) reported(length);
    },
    figures: (figures) => {
      const from = figures?.[0]?.at ?? Number.POSITIVE_INFINITY;
      const before = this.figures.value?.filter(({ at }) => at < from) ?? [];
      this.figures.value = figures && [...before, ...figures].slice(-MAX_FIGURES);
    },
    agent: into(this.agent),
    fleet: (fleet) => {
      this.fleet.value = fleet ?? undefined;
    },
    service: into(this.service),
    stateError: into(this.stateError),
  };
}

const into =
  <T>(kept: Signal<T>) =>
  (value: T) => {
    kept.value = value;
  };

const nameOf = ({ taskId, file }: FileState) => `${taskId}/${file}`;

export const live: Live = new Live();
