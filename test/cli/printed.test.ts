/** All that commands print of one state in which everything has happened, as people see it. */
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { execute } from '../../src/cli/execute.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import { viewSettingsOf } from '../../src/daemon/view-thread.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';
import { DECODING_CAPABILITY } from '../../src/remote/text/decoding.ts';
import { JobInformations, Requests } from '../../src/store/jobs.ts';
import type { JobRow, ResultSyncRow, StoredError, WatchState } from '../../src/store/rows.ts';
import { WAKE_FILE } from '../../src/store/store.ts';
import { packageFile } from '../../src/system/package-file.ts';
import { serveView } from '../../src/view/serve.ts';
import { startAgent } from '../support/composed-agent.ts';
import { taskOf } from '../support/e2e-job.ts';
import { Place, type Sections } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { ENDED, FAILING, NOW, SEARCHED, SETTLED, writeState } from '../support/full-state.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../support/model-remote.ts';
import { directoryOfFile, temporaryDirectory } from '../support/temp-directory.ts';
import { ownState, withoutPatience } from './own-state.ts';

const directory = directoryOfFile();
const withoutHosts = (text: string) => text.replaceAll(/(?:127\.0\.0\.1|localhost):\d+/g, 'HOST');
/** Another one after its modules were loaded again. */
let run = execute;
afterEach(() => {
  run = execute;
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

/** What happens once a command has printed these words after those before. */
type Meanwhile = readonly [words: string, step: () => unknown];

/** What a command line prints and its exit code; lines of the standard error begin with `!`. */
async function printedBy(args: readonly string[], meanwhile: readonly Meanwhile[] = []): Promise<string> {
  let text = '';
  let printed = () => {};
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((written, encoding) => {
    // Bytes that are no text are shown as such.
    const isBytes = encoding === ('latin1' as never);
    text += String(written).replaceAll(/[\u0080-\u00ff]/g, (byte) =>
      isBytes ? `\\x${byte.charCodeAt(0).toString(16)}` : byte,
    );
    printed();
    return true;
  });
  const error = vi.spyOn(process.stderr, 'write').mockImplementation((written) => {
    text += String(written).replaceAll(/^(?=.)/gm, '!');
    printed();
    return true;
  });
  process.exitCode = undefined;
  try {
    const running = run(args);
    let from = 0;
    for (const [words, step] of meanwhile) {
      // At once, before whatever the command would print next.
      const seen = new Promise<void>((resolve) => {
        printed = () => text.includes(words, from) && resolve();
        printed();
      });
      await Promise.race([seen, running]);
      expect(text.slice(from), 'what it printed until its end').toContain(words);
      from = text.indexOf(words, from) + words.length;
      const made = await step();
      if (typeof made === 'string') text += made;
    }
    await running;
  } finally {
    out.mockRestore();
    error.mockRestore();
  }
  const shown = text
    .replaceAll('\u001b', 'ESC')
    // How a question moves the cursor.
    .replaceAll(/!ESC\[\d[GJ]|(?<=\[y\/N\]).*/g, '')
    .replaceAll(`pid ${process.pid}`, 'pid 1')
    .replaceAll(/(?<="(?:pid|freeBytes|tookMs)": )\d+/g, '1')
    .replaceAll(/(?<="id": ")[\da-f-]{36}/g, 'ID')
    .replaceAll(/\d\d:\d\d:\d\d(?=\))/g, 'TIME')
    .replaceAll(/ in [\d.]+ \w+ \([^)]*\/s\)/g, ' in TIME')
    .replaceAll(/in \d+ ms/g, 'in TIME')
    .replaceAll(/[\d.]+ [KMGT]?i?B free/g, 'SIZE free')
    // A short form of JSON.
    .replaceAll(/\n(?: {6,}(?=["{}\]])| {4}(?=[}\]]))/g, ' ')
    .replaceAll(/^ {2}"\w+": \{(?:\n {4}.*)+\n {2}\}/gm, (object) => `  ${object.trim().replaceAll(/\n +/g, ' ')}`);
  return `${shown}= ${process.exitCode ?? 0}\n`;
}

interface Page {
  /** The configuration of the commands. */
  readonly config?: () => string;
  /** What stands for a value, in commands and in what they print. */
  readonly names?: Map<string, string>;
  /** What happens before a command, by its name or its first word; a text that it returns is printed. */
  readonly steps?: Readonly<Record<string, (of: string) => unknown>>;
  readonly shown?: (text: string) => string;
}

/** What a command printed: of three lines and more that the one before printed, too, how many. JSON is whole. */
function different(text: string, before: readonly string[]): string {
  const isSame = (line: string) => /^ *[^\s{}"\]=]/.test(line) && before.includes(line);
  const marked = text.split('\n').map((line) => (isSame(line) ? `\0${line}` : line));
  const count = (run: string) => `... ${run.split('\n').length} lines as before`;
  return marked
    .join('\n')
    .replaceAll(/^\0.*(?:\n\0.*){2,}/gm, count)
    .replaceAll('\0', '');
}

/** The values of a step, as JSON with commas between them. */
const valuesOf = <Values extends readonly unknown[]>(of: string) => JSON.parse(`[${of}]`) as Values;

/**
 * Runs the command of each line of a page that begins with `$ agent`, after the steps that lines with `#` name. What they
 * print is the rest of the page, which `--update=true` writes. A word may be in quotes. `# STEP at X` happens once the next
 * command has printed X, `# STEP meanwhile` at once; such a step may be `Ctrl-C`.
 */
async function expectPage(file: string, { config, names = new Map(), steps = {}, shown = (text) => text }: Page) {
  let all = '';
  let meanwhile: Meanwhile[] = [];
  let before: readonly string[] = [];
  const named = (text: string) => [...names].reduce((all, [name, value]) => all.replaceAll(name, value), text);
  const stepOf = (written: string) => {
    const [, word = '', of = ''] = /^(\S+) ?(.*)$/.exec(written) ?? [];
    const step = steps[written] ?? steps[word];
    if (written === 'Ctrl-C') return () => process.emit('SIGINT', 'SIGINT');
    if (step === undefined) throw new Error(`there is no such step: ${written}`);
    return () => step(named(of));
  };
  for (const line of fs.readFileSync(path.join(import.meta.dirname, file), 'utf8').split('\n')) {
    const [, sort, rest = ''] = /^([#$]) ?(.*)$/.exec(line) ?? [];
    if (sort === undefined) continue;
    all += `${line}\n`;
    let printed: unknown;
    if (sort === '$') {
      const args = [...rest.matchAll(/'([^']*)'|\S+/g)].slice(1).map(([word, quoted = word]) => named(quoted));
      if (config !== undefined && args[0] !== '__complete') args.splice(1, 0, '--config', config());
      printed = `${await printedBy(args, meanwhile)}\n`;
      meanwhile = [];
    } else {
      const [, written, words = ''] = /^(.*?) (?:meanwhile|at (.*))$/.exec(rest) ?? [];
      if (written === undefined || steps[rest] !== undefined) printed = await stepOf(rest)();
      else meanwhile.push([words, stepOf(written)]);
    }
    if (typeof printed !== 'string') continue;
    const text = [...names].reduce((all, [name, value]) => all.replaceAll(value, name), shown(printed));
    all += sort === '$' ? different(text, before) : text;
    if (sort === '$') before = text.split('\n');
  }
  await expect(all).toMatchFileSnapshot(file);
}

/** Programs that `agent check` finds, whatever is installed. */
function putPrograms(directory: string): void {
  fs.mkdirSync(directory);
  for (const name of ['ssh', 'rsync']) fs.writeFileSync(path.join(directory, name), '', { mode: 0o755 });
  vi.stubEnv('PATH', `${directory}:${process.env['PATH']}`);
  vi.stubEnv('LC_ALL', 'C.UTF-8');
}

it('each command prints the whole of a state in which everything has happened', async () => {
  // The agent answers nothing.
  withoutPatience(20);
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const temporary = path.join(directory, 'temporary');
  fs.mkdirSync(temporary);
  vi.stubEnv('TMPDIR', temporary);
  putPrograms(path.join(directory, 'programs'));
  const { configFile, store } = await writeState(directory);
  const before = fs.readFileSync(configFile, 'utf8');
  const mirrors = path.join(directory, 'mirror');
  const live = path.join(mirrors, SETTLED, 'live');
  const odd = path.join(mirrors, ENDED, 'live', '9001', 'stdout.log');
  let unreadable = 'nothing';
  const open = fs.openSync;
  vi.spyOn(fs, 'openSync').mockImplementation((at, ...rest) => {
    if (!String(at).includes(unreadable)) return open(at, ...rest);
    throw Object.assign(new Error(`EIO: i/o error, open '${String(at)}'`), { code: 'EIO' });
  });
  const { isTTY, columns, rows } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY, columns, rows }));
  await expectPage('printed.txt', {
    config: () => configFile,
    names: new Map([['DIR', directory]]),
    steps: {
      unreadable: (part) => {
        unreadable = part;
      },
      'another program cuts a mirror': () => fs.truncateSync(path.join(live, '9004', 'stdout.log'), 1),
      'another program removes the mirrors': () => fs.rmSync(live, { recursive: true }),
      'a file is in the place of all mirrors'() {
        fs.renameSync(mirrors, `${mirrors}.away`);
        fs.writeFileSync(mirrors, '');
      },
      'they are back'() {
        fs.rmSync(mirrors);
        fs.renameSync(`${mirrors}.away`, mirrors);
      },
      'its live files were not found'() {
        for (const row of store.liveFiles.ofJob(SETTLED))
          store.liveFiles.save({ ...row, verified: null, unverified: 'The file was not found.' });
      },
      'the clock of the service is 31 days behind': () => store.capabilities.set('clock', String(-31 * 86_400_000)),
      'the answer to its question is: maybe'() {
        const stdin = Object.assign(Readable.from(['maybe\n']), { isTTY: true });
        vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as never);
      },
      'a program writes what is no text'() {
        fs.mkdirSync(path.dirname(odd), { recursive: true });
        fs.writeFileSync(odd, Buffer.from('10 %\r\xff\xfe\tx\r\nh\xe9', 'latin1'));
      },
      'another failure, also of two jobs, and another key for transfers'() {
        store.jobs.save({ ...(store.jobs.get(FAILING) as JobRow), error: null, state: 'watched' });
        const refused: StoredError = { code: 'fault', message: 'no such job', hint: null, since: NOW - 1 };
        for (const jobId of [SEARCHED, SETTLED])
          store.jobs.save({ ...(store.jobs.get(jobId) as JobRow), error: refused });
        for (const row of store.liveFiles.ofJob(FAILING)) {
          const message = `${row.file} is a link`;
          const error: StoredError = { code: 'local-io', message, hint: 'remove it', since: NOW - 1 };
          store.liveFiles.save({ ...row, error, position: 20 });
        }
        const sync = store.resultSyncs.get(FAILING) as ResultSyncRow;
        store.resultSyncs.save({ ...sync, endedAt: null, way: 'soap', fallback: null });
        store.leases.lose(store.leases.ask(FAILING, NOW - 60_000), 'no answer');
        const synced = [...store.results.ofJob(FAILING)].map(
          (row) => ({ ...row, state: 'synced', reason: null }) as const,
        );
        store.results.saveAll(synced);
      },
      state: (state) => store.jobs.setState(FAILING, state as WatchState),
      'a terminal, narrower than a last line without an end'() {
        store.jobs.setState(FAILING, 'watched');
        fs.appendFileSync(odd, `${'-'.repeat(80)}end`);
        Object.assign(process.stdout, { isTTY: true, columns: 70, rows: 12 });
      },
      'no terminal': () => Object.assign(process.stdout, { isTTY, columns, rows }),
      AGENT_CONFIG: (file) => vi.stubEnv('AGENT_CONFIG', file),
    },
  });
  expect(fs.readFileSync(configFile, 'utf8'), 'no report is written over it').toBe(before);
  expect(fs.readdirSync(temporary)).toEqual([]);
});

it('each command that an agent works for prints what the agent did', async () => {
  const [remote, service] = [new ModelRemote(), new ModelJobService()];
  const put = (name: string, text: string) => remote.files.set(`9001/${name}`, Buffer.from(text));
  put('stdout', 'one\ntwo\n');
  service.set(jobOf('501', 'Running', { tasks: tasksOf('9001') }));
  service.set(jobOf('502', 'Queued', { name: 'another' }));
  const { agent, store, mirrorDirectory } = await startAgent(remote, {
    jobService: service,
    sections: 'poll: {minIntervalSeconds: 0.1, maxIntervalSeconds: 0.2}\nresults: {intervalSeconds: 600}\n',
  });
  const wakes = new FileWatch();
  wakes.watch(new Map([[path.join(store.directory, WAKE_FILE), () => agent.refresh()]]));
  onTestFinished(() => wakes.close());
  const directory = path.dirname(mirrorDirectory);
  const ofAgent = path.join(directory, 'config.yaml');
  let file = path.join(directory, 'with-jobs.yaml');
  const jobsUrl = '\n  jobsUrl: "https://m.example.org/JobManagementWs"\nauth:';
  // The target works once the gate is there.
  const gate = path.join(directory, 'gate');
  const rule = JSON.stringify({ on: ['failed'], command: ['sh', '-c', '[ -e "$0" ] && cat >> "$0"', gate] });
  const text = fs.readFileSync(ofAgent, 'utf8').replace('\nauth:', jobsUrl);
  fs.writeFileSync(file, `${text}\nnotify: [${rule}]\n`, { mode: 0o600 });
  await expectPage('printed-by-agent.txt', {
    config: () => file,
    names: new Map([['DIR', directory]]),
    steps: {
      'the target works': () => fs.writeFileSync(gate, ''),
      'what it received': () => fs.readFileSync(gate, 'utf8').replaceAll(/"(?:id|time)":"[^"]*",/g, ''),
      config: (other) => {
        file = other;
      },
      async 'its row, once its lines are here'() {
        await until('its lines', () => store.liveFiles.ofJob(FAILING)[0]?.position === 8);
        const { results, stallAfterMs, settleAfterMs } = store.jobs.get(FAILING) as JobRow;
        const files = store.liveFiles.ofJob(FAILING).map((row) => row.file);
        return `${JSON.stringify({ results, stallAfterMs, settleAfterMs, files })}\n`;
      },
      put: (of) => put(...valuesOf<[string, string]>(of)),
      remove: (name) => remote.files.delete(name),
      'both results are here': () => until('its result', () => store.results.counts(FAILING).synced === 2),
      'the rule': () => `${JSON.stringify({ ...store.watchMine.of('command'), since: 'TIME' })}\n`,
      'the sign-in is refused'() {
        const hint = 'check the password';
        service.failure = new JobtailError('sign-in-refused', 'it was refused; next sign-in within 9 s', { hint });
      },
      'the sign-in works': () => Object.assign(service, { failure: undefined }),
      rawAccess: (is) => Object.assign(remote, { rawAccess: is === 'true' }),
      'its mirrors': () => `${fs.existsSync(path.join(mirrorDirectory, FAILING)) ? 'are there' : 'are gone'}\n`,
      'a job without tasks'() {
        const request = { tasks: [], files: [], results: false, settleAfterMs: null, source: 'command' } as const;
        store.jobs.watch({ jobId: '503' as JobId, ...request }, 0);
      },
    },
  });
  expect(store.requests.open('service')).toEqual([]);
});

it('each command prints what it does where no agent runs', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const names = new Map([['DIR', place.directory]]);
  for (const number of [1, 2, 3]) {
    const job = await sandbox.submit({ tasks: [{}] });
    const { taskId, files } = taskOf(job);
    names.set(`JOB-${number}`, job.jobId).set(`TASK-${number}`, taskId).set(`STDOUT-${number}`, files.stdout);
  }
  const write = (text: string) => fs.writeFileSync(names.get('STDOUT-1') ?? '', text);
  write('one\ntwo\n');
  const configure = (jobsUrl: string | null, sections: Sections = {}) =>
    place.configure(sandbox, { service: { jobsUrl }, ...sections });
  vi.spyOn(process, 'chdir').mockReturnValue();
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  configure(null);
  await expectPage('printed-alone.txt', {
    config: () => place.configFile,
    names,
    shown: (text) =>
      withoutHosts(text)
        .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME')
        .replaceAll(/(?<=\?ticket=)\S+/g, 'TICKET'),
    steps: {
      jobsUrl: (of) => configure(sandbox.jobsUrl, ...valuesOf<[Sections]>(of)),
      stdout: (of) => write(...valuesOf<[string]>(of)),
      async 'a job of the rule, as an agent has both'() {
        const store = openSharedStore(await loadConfig(place.configFile));
        const request = { tasks: [], files: [], results: true, settleAfterMs: null, source: 'mine' } as const;
        store.jobs.watch({ jobId: '601' as JobId, ...request }, 1);
        const rule = { include: ['none-*'], exclude: [], maxAgeMs: 1, maxJobs: 2 };
        store.watchMine.save({ ...rule, source: 'config', since: 1 });
        store.close();
      },
      'no jobsUrl': () => configure(null, { results: { transfer: 'service' } }),
    },
  });
});

it('commands that wait beside an agent print each thing once, below the line that has no end yet', async () => {
  const { directory, file, config, store } = await ownState({ results: { enabled: false } });
  const [job, other, task] = ['501' as JobId, '502' as JobId, '601' as TaskId];
  const mirror = path.join(config.mirror.directory, job, 'live', task, 'stdout.log');
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  const streams = [process.stdout, process.stderr];
  const before = streams.map(({ isTTY, columns }) => ({ isTTY, columns }));
  onTestFinished(() => streams.forEach((stream, at) => void Object.assign(stream, before[at])));
  for (const stream of streams) stream.isTTY = true;
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  withoutPatience(20);
  const watch = (jobId: JobId, tasks: readonly TaskId[] | null = [task]) =>
    store.transaction(() => {
      const more = { results: false, settleAfterMs: null, source: 'command' } as const;
      store.jobs.watch({ jobId, tasks, files: ['stdout', 'stderr'], ...more }, Date.now());
    });
  const away = () => {
    throw new JobtailError('store', 'it is away');
  };
  const requested = () => store.requests.open('follow').map(({ jobId }) => jobId);
  watch(job);
  await expectPage('printed-beside.txt', {
    config: () => file,
    names: new Map([['DIR', directory]]),
    steps: {
      'results are fetched': () =>
        fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('"enabled":false', '"enabled":true')),
      width: (columns) => Object.assign(process.stdout, { columns: Number(columns) }),
      append: (text) => fs.appendFileSync(mirror, JSON.parse(text) as string),
      reported: (state) =>
        store.jobInformation.save({ jobId: job, information: jobOf(job, state), since: 1, reportedAt: 1 }),
      failed(of) {
        const [, name, message = ''] = /^(\S+) (.*)$/.exec(of) ?? [];
        const error: StoredError = { code: 'local-io', message, hint: null, since: 1 };
        for (const row of store.liveFiles.ofJob(job)) if (row.file === name) store.liveFiles.save({ ...row, error });
      },
      polled() {
        const end = { stalledAt: null, grownAt: null, refused: 0, failures: 0, error: null };
        store.jobs.endRun(job, { polledAt: Date.now(), ...end });
      },
      settled: (jobId) => store.jobs.setState((jobId || job) as JobId, 'settled'),
      over: () => until('its end', () => requested().length === 1),
      watched: (jobId) => watch((jobId || job) as JobId, jobId === other ? null : undefined),
      removed: (jobId) => store.transaction(() => store.jobs.forget(jobId as JobId, Date.now())),
      lost: () => store.portableRows.forget(job),
      unreachable() {
        const error = { code: 'unreachable', message: 'connection refused', hint: null, since: 1 } as const;
        store.jobs.save({ ...(store.jobs.get(other) as JobRow), error });
      },
      async answered() {
        const { requestId } = await until('the question', () => store.requests.open('service')[0]);
        store.requests.answer(requestId, JSON.stringify({ jobs: [jobOf(job, 'Running', { tasks: tasksOf(task) })] }));
      },
      async synced() {
        const counts = { wanted: 100, done: 20, bytes: 2_097_152, wantedBytes: null } as const;
        const row = { jobId: job, ...counts, way: 'soap', fallback: null, endedAt: null, arriving: [] } as const;
        await until('the request', () => store.requests.open('pass').length > 0);
        const startedAt = Date.now();
        store.resultSyncs.save({ ...row, startedAt, updatedAt: startedAt + 2_000 });
      },
      passed() {
        const summary = { appended: 0, liveFiles: 1, verified: 1, openEnds: [], results: null, isListingEmpty: false };
        for (const { requestId } of store.requests.open('pass'))
          store.requests.answer(requestId, JSON.stringify({ summary }));
      },
      requests: () => `(requests: ${requested().sort().join(' ') || 'none'})\n`,
      'its request can be neither renewed nor removed, as on a full disk'() {
        for (const name of ['renew', 'remove'] as const) vi.spyOn(Requests.prototype, name).mockImplementation(away);
      },
      renewed: () => until('two renewals', () => vi.mocked(Requests.prototype.renew).mock.calls.length > 1),
      'its state is away'() {
        vi.spyOn(JobInformations.prototype, 'get').mockReturnValueOnce(undefined).mockImplementation(away);
      },
    },
  });
});

it('agent view prints the link of the view that answers, or serves one, and opens it in a browser', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const { directory, file, config, store } = await ownState({ view: { listen } });
  const more = { tasks: null, files: [], results: false, settleAfterMs: null, source: 'command' } as const;
  store.jobs.watch({ jobId: FAILING, ...more }, 1);
  const programs = path.join(directory, 'programs');
  fs.mkdirSync(programs);
  const [opened, opener] = [path.join(directory, 'opened'), path.join(programs, 'xdg-open')];
  fs.writeFileSync(opener, `#!/bin/sh\ncp "\${1#file://}" '${opened}.new' && mv '${opened}.new' '${opened}'\n`, {
    mode: 0o755,
  });
  vi.stubEnv('PATH', `${programs}:${process.env['PATH']}`);
  vi.stubEnv('DISPLAY', ':9');
  const chdir = vi.spyOn(process, 'chdir').mockReturnValue();
  const { isTTY } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY }));
  const settings = viewSettingsOf(config, { program: '1.2.3', agentPid: process.pid });
  const other = createServer((_, response) => response.end('{}'));
  await expectPage('printed-view.txt', {
    config: () => file,
    names: new Map([['DIR', directory]]),
    shown: (text) =>
      withoutHosts(text)
        .replaceAll(/(?<=\?ticket=)[\w.-]+/g, 'TICKET')
        .replaceAll(/\d+ d ago/g, 'TIME ago'),
    steps: {
      async 'another program listens there'() {
        other.listen(settings.listen);
        await once(other, 'listening');
      },
      'the service does not decode UTF-8, and its key for transfers is lost'() {
        store.capabilities.set(DECODING_CAPABILITY, 'other');
        store.leases.lose(store.leases.ask(FAILING, 1), 'no answer');
      },
      async 'the view of the agent does'() {
        other.close();
        await once(other, 'close');
        const view = await serveView({ settings, fleet: null, figures: null, onFailure: () => expect.unreachable() });
        onTestFinished(() => view.close());
      },
      'a terminal': () => Object.assign(process.stdout, { isTTY: true }),
      async 'what the browser opened'() {
        await until('the browser', () => fs.existsSync(opened));
        return fs.readFileSync(opened, 'utf8');
      },
    },
  });
  // A command that serves keeps no directory in use.
  expect([...new Set(chdir.mock.calls.flat())]).toEqual(['/']);
});

it('each wrong command line prints what is wrong with it, once, and what was meant', async () => {
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  vi.stubEnv('XDG_CONFIG_HOME', '/none');
  vi.stubEnv('AGENT_CONFIG', undefined);
  const before = process.cwd();
  onTestFinished(() => process.chdir(before));
  const home = temporaryDirectory();
  await expectPage('printed-wrong.txt', {
    names: new Map([['DIR', home]]),
    steps: {
      'in the directory of a result that is called config.yaml'() {
        const results = path.join(home, 'mirror', '501', 'results', '503');
        fs.mkdirSync(results, { recursive: true });
        const auth = `{username: a, passwordCommand: [touch, ${home}/ran]}`;
        const sections = `service: {protocol: rest, baseUrl: "http://127.0.0.1:9"}\nauth: ${auth}\n`;
        fs.writeFileSync(path.join(results, 'config.yaml'), `${sections}state: {directory: state}\n`);
        process.chdir(results);
      },
      'what it ran, and made': () => `${fs.readdirSync(home)}, ${fs.readdirSync('.')}\n`,
    },
  });
  for (const args of [['status', 'a\u001b]52;c;x\u0007'], ['a\u001b[2J\u009b']])
    expect((await printedBy(args)).split('\n')[0]).toMatch(/^!agent: [ -~]+$/);
});

it('agent init writes private files or those of a unit, keeps former ones aside, and no part of new ones where it fails', async () => {
  const home = temporaryDirectory();
  const at = (name: string) => path.join(home, name);
  await expectPage('printed-init.txt', {
    names: new Map([['DIR', home]]),
    shown: (text) => text.replaceAll(`.${process.pid}.`, '.PID.'),
    steps: {
      stdin: (of) => vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from(valuesOf(of)) as never),
      show: (name) => fs.readFileSync(at(name), 'utf8').replaceAll(/^#/gm, ' #'),
      /** Their rights, and what is in them: of configurations, some keys. */
      files(of) {
        const names = fs.readdirSync(at(of), { withFileTypes: true }).filter((entry) => entry.isFile());
        const lines = names.map(({ name }) => {
          const file = at(path.join(of, name));
          const text = fs.readFileSync(file, 'utf8');
          const keys = text.match(/(?<=^ +)(?:username|\w+Credential|directory).*/gm) ?? [text.trim()];
          return `${name} ${(fs.statSync(file).mode & 0o777).toString(8)}: ${keys.join(', ')}\n`;
        });
        const { mode } = fs.statSync(at(of));
        return [...(of === '' ? [] : [`${of} ${(mode & 0o777).toString(8)}\n`]), ...lines.sort()].join('');
      },
      HOME: (directory) => {
        for (const name of ['AGENT_CONFIG', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME'])
          vi.stubEnv(name, undefined);
        vi.stubEnv('HOME', directory);
      },
      'a password is there: --force would replace that of another configuration': () => {},
      'the place of the new password is taken': () => fs.writeFileSync(at(`password.${process.pid}.new`), ''),
      'what units load': () =>
        ['agent', 'agent@']
          .map((name) => {
            const text = fs.readFileSync(packageFile(`systemd/${name}.service`), 'utf8');
            return `${name}: ${/^LoadCredential=.*/m.exec(text)?.[0]}\n`;
          })
          .join(''),
      'the unit cannot read a file of root: of-root': () =>
        fs.writeFileSync(at('of-root'), 'another secret\n', { mode: 0o600 }),
    },
  });
});

it('agent version prints the version of each part of the program', async () => {
  const text = await printedBy(['version']);
  // The last two are optional.
  const shown = text.replaceAll(/\d+(?:\.\d+)+|\(\w+-.*\)|(?<=^(?:unix-dgram|pg) ).*/gm, 'V');
  const parts = ['jobtail', 'Node.js V', 'SQLite', 'better-sqlite3', 'unix-dgram', 'pg'];
  expect(shown).toBe(`${parts.map((part) => `${part} V\n`).join('')}= 0\n`);
  const json = (await printedBy(['version', '--json'])).replaceAll(/^=.*/gm, '');
  expect(JSON.parse(json)).toMatchObject({
    program: { name: 'jobtail', file: fs.realpathSync(process.argv[1] ?? '') },
    node: { version: process.versions.node, file: process.execPath },
    platform: { system: process.platform, architecture: process.arch },
    modules: { 'better-sqlite3': { isNative: true, error: null }, pg: { isNative: false } },
  });
});

it.each([
  ['', 'Usage: agent'],
  ['results', '\nThe page of the documents: agent help results.md\n'],
  ['json', '# Output for programs'],
  ['view.md', '# The view in a browser'],
])('agent help %s prints a page of commands, or one of the documents, within 80 columns', async (name, words) => {
  vi.stubEnv('COLUMNS', '80');
  const text = await printedBy(['help', name].filter((word) => word !== ''));
  expect(text).toContain(words);
  expect(text).toMatch(/\n= 0\n$/);
  // Only the list of the pages, and a long word.
  expect(text.split('\n').filter((line) => /^(?!\().{81}/.test(line) && /\S /.test(line))).toEqual([]);
});

it('agent check prints what it detects of a service, what is wrong, and what to do', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits({ offsetEcho: 'nil', listForm: 'bare' });
  const programs = path.join(place.directory, 'cluster', 'programs');
  putPrograms(programs);
  const wrong = path.join(place.directory, 'cluster', 'wrong');
  fs.writeFileSync(wrong, 'wrong\n', { mode: 0o644 });
  const names = new Map([
    ['DIR', place.directory],
    ['JOBS-URL', sandbox.jobsUrl],
    ['ADDRESS', new URL(sandbox.baseUrl).host],
  ]);
  const configure = (sections: Sections = {}, service: object = {}) =>
    place.configure({ ...sandbox, ...service }, sections);
  // Another server, which knows nothing of jobs.
  let date = '';
  const other = createServer((_, response) => response.writeHead(404, { date }).end()).listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  names.set('OTHER', `localhost:${(other.address() as AddressInfo).port}`);
  await expectPage('printed-check.txt', {
    config: () => place.configFile,
    names,
    shown: (text) =>
      withoutHosts(text)
        .replaceAll(/aheadMs=\d+|\d+ s (?=behind|ahead)/g, 'SO MUCH ')
        .replaceAll(/(?<=does not speak TLS )\(.*\)/g, '(WHY)'),
    steps: {
      configure: (of) => configure(...valuesOf<[Sections?, object?]>(of)),
      rest: (of) => {
        const directories = { mirror: { directory: place.mirror }, state: { directory: place.state } };
        const [sections = {}] = valuesOf<[object?]>(of);
        place.writeConfig(JSON.stringify({ ...sandbox.configuration('rest'), ...directories, ...sections }));
      },
      async submit(of) {
        const job = await sandbox.submit({ tasks: [{}] });
        const { taskId, files } = taskOf(job);
        for (const [at, name] of of.split(' ').entries()) names.set(name, [job.jobId, taskId][at] ?? '');
        fs.writeFileSync(files.stdout, 'hello\n');
      },
      fail: (jobId) => sandbox.change(jobId, 'fail'),
      fault: (operation) => sandbox.fault({ kind: 'http', status: 418, operation: operation as Operation }),
      'it changes nothing': () => expect(fs.readdirSync(place.directory).sort()).toEqual(['cluster', 'config.yaml']),
      mode(of) {
        const [mode = '', file = ''] = of.split(' ');
        fs.chmodSync(file, Number.parseInt(mode, 8));
      },
      PATH: (directories) => vi.stubEnv('PATH', directories),
      ahead: (seconds) => {
        date = new Date(Date.now() + Number(seconds) * 1_000).toUTCString();
      },
      'no date': () => {
        date = '?';
      },
      'the service is stopped': () => sandbox.stop(),
      // How its name is not found depends on the machine.
      async 'a name that is not found'() {
        configure({}, { baseUrl: 'http://middleware.invalid' });
        return (await printedBy(['check', '--config', place.configFile])).match(/^.*not encrypted.*\n.*\n/m)?.[0];
      },
    },
  });
});

// The last one: it loads the modules again, which have their colours from the start.
it('commands have colours on a terminal', async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  vi.stubEnv('NO_COLOR', '');
  vi.stubEnv('FORCE_COLOR', '');
  vi.stubEnv('TERM', 'xterm');
  const { isTTY, columns } = process.stdout;
  onTestFinished(() => {
    Object.assign(process.stdout, { isTTY, columns });
    // The next file of this process has none.
    vi.resetModules();
  });
  Object.assign(process.stdout, { isTTY: true, columns: 200 });
  vi.resetModules();
  ({ execute: run } = await import('../../src/cli/execute.ts'));
  const own = temporaryDirectory();
  const { configFile } = await writeState(own);
  await expectPage('printed-colours.txt', { config: () => configFile, names: new Map([['DIR', own]]) });
});
