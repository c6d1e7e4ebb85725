/** The events of the server as signals. Each tab has one stream, for what it shows; a hidden tab closes it. */
import { computed, effect, type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { nominalPause } from '../../back-off.ts';
import type {
  AgentState,
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
import { address, pause } from './api.ts';
import { type Connection, conditionOf } from './condition.ts';

const RECONNECTS = { firstMs: 250, maxMs: 5_000 };
/** Of two hours. */
const MAX_FIGURES = 1_440;

export class Live {
  readonly connection: Signal<Connection> = signal('connecting');
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
  /** Whether the shown data are current. */
  readonly condition = computed(() =>
    conditionOf({
      connection: this.connection.value,
      lostAt: this.#lostAt.value,
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
  /** A tab that signs in notifies the others: cookies are shared. */
  readonly #tabs = new BroadcastChannel('jobtail-view');
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
    this.#tabs.onmessage = () => {
      if (this.connection.value === 'refused') attempt.value++;
    };
    effect(() => {
      const to = wanted.value;
      void attempt.value;
      return to === undefined ? undefined : this.#listen(to, () => attempt.value++);
    });
  }

  /** Sets the topics that the page shows besides live files. */
  subscribe(topics: StreamTopics): void {
    if (JSON.stringify(topics) !== JSON.stringify(this.#topics.peek())) this.#topics.value = topics;
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

  /** Opens the stream; what is returned closes it. `again` is called when the browser has given up. */
  #listen(to: string, again: () => void): () => void {
    const stream = new EventSource(to);
    const over = new AbortController();
    stream.onerror = () => {
      if (this.connection.value !== 'refused') {
        this.#lostAt.value ??= this.now.value;
        this.connection.value = 'lost';
      }
      if (stream.readyState === EventSource.CLOSED) void goOn();
    };
    const goOn = async () => {
      if (await this.#isRefused()) {
        this.connection.value = 'refused';
        return;
      }
      this.#failures++;
      await pause(nominalPause(this.#failures, RECONNECTS), over.signal);
      if (!over.signal.aborted) again();
    };
    const take = <K extends keyof Events>(name: K, taken: (data: Events[K]) => void) =>
      stream.addEventListener(name, ({ data }: MessageEvent<string>) => taken(JSON.parse(data) as Events[K]));
    this.#take(take);
    return () => {
      over.abort();
      stream.close();
    };
  }

  /** A stream does not show its status; any other request does, and this one costs nothing. */
  async #isRefused(): Promise<boolean> {
    const response = await fetch('api/place', { cache: 'no-store' }).catch(() => undefined);
    return response?.status === 401;
  }

  #take(take: <K extends keyof Events>(name: K, taken: (data: Events[K]) => void) => void): void {
    take('hello', ({ program, now }) => {
      // A page of another version of the program might misread what comes.
      if (this.#program !== undefined && this.#program !== program) location.reload();
      this.#program = program;
      this.#failures = 0;
      this.#clockAhead = now - Date.now();
      this.now.value = now;
      if (this.connection.value !== 'open') this.#tabs.postMessage('open');
      this.connection.value = 'open';
      this.#lostAt.value = null;
    });
    take('jobs', ({ whole, jobs }) => {
      const all = new Map(whole ? [] : (this.jobs.value ?? []));
      for (const job of jobs) all.set(job.jobId, job);
      this.jobs.value = all;
    });
    take('job', (job) => {
      this.details.value = new Map(this.details.value).set(job.jobId, job);
      this.missing.value = new Set([...this.missing.value].filter((jobId) => jobId !== job.jobId));
    });
    take('missing', ({ jobId }) => {
      this.missing.value = new Set(this.missing.value).add(jobId);
    });
    take('files', ({ jobId, whole, files }) => {
      const all = new Map((whole ? [] : (this.files.value.get(jobId) ?? [])).map((one) => [nameOf(one), one]));
      for (const file of files) all.set(nameOf(file), file);
      this.files.value = new Map(this.files.value).set(jobId, [...all.values()]);
    });
    take('length', (length) => {
      for (const reported of this.#lengths.get(length.file) ?? []) reported(length);
    });
    take('figures', (figures) => {
      const from = figures?.[0]?.at ?? Number.POSITIVE_INFINITY;
      const before = this.figures.value?.filter(({ at }) => at < from) ?? [];
      this.figures.value = figures && [...before, ...figures].slice(-MAX_FIGURES);
    });
    for (const name of ['agent', 'fleet', 'service', 'stateError'] as const)
      take(name, (data) => {
        (this[name] as Signal<typeof data>).value = data;
      });
  }
}

const nameOf = ({ taskId, file }: FileState) => `${taskId}/${file}`;

const LiveContext = createContext<Live | undefined>(undefined);

export const ProvideLive = LiveContext.Provider;

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (live === undefined) throw new Error('nothing listens to the server');
  return live;
}
