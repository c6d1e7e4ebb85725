/** Limits of the values of a configuration. What else is refused, and how: cases.test.ts. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { numRuns } from '../support/property-runs.ts';
import { configDirectory } from './files.ts';

const { load, refusal } = configDirectory();

/** Of numbers: the smallest, the largest, and the step beyond them. Of texts: their greatest length. */
const SAFE = Number.MAX_SAFE_INTEGER;
const NUMBERS: Readonly<Record<string, readonly [smallest: number, largest: number, step: number]>> = {
  'service.concurrency': [1, 1000, 1],
  'service.requestsPerMinute': [1, 1_000_000, 1],
  'service.timeoutSeconds': [0.001, 86_400, 0.0005],
  'auth.commandTimeoutSeconds': [0.001, 3_600, 0.0005],
  'mirror.keepGenerations': [0, 1_000, 1],
  'mirror.minFreeBytes': [0, SAFE, 1],
  'poll.minIntervalSeconds': [0.001, 86_400, 0.0005],
  'poll.maxIntervalSeconds': [0.001, 86_400, 0.0005],
  'poll.overlapBytes': [4, 1_020, 1],
  'results.intervalSeconds': [0.001, 86_400, 0.0005],
  'results.maxFileBytes': [1, SAFE, 1],
  'results.directAboveBytes': [0, SAFE, 1],
  'results.bandwidthLimit': [1_024, SAFE, 1],
  'watch.0.settleAfterMinutes': [1 / 60_000, 20_160, 0.00001],
  'watchMine.maxAgeDays': [1 / 86_400_000, 3_650, 1e-9],
  'watchMine.maxJobs': [1, 100_000, 1],
  stallAfterMinutes: [1 / 60_000, 20_160, 0.00001],
  'retention.settledDays': [1 / 86_400_000, 3_650, 1e-9],
  'fleet.maxJobs': [1, 100_000, 1],
  'fleet.heartbeatSeconds': [10, 600, 1],
};
const LENGTHS: Readonly<Record<string, number>> = { 'fleet.name': 63, 'fleet.schema': 40, 'api.controlGroup': 64 };
const PATHS: Readonly<Record<string, number>> = { 'api.directory': 80, 'view.listen': 90 };

it('every limit of a number and of a length is where it is', async () => {
  const base: object = {
    service: {
      protocol: 'soap',
      fileTransferUrl: 'http://m/',
      namespace: 'urn:x',
      baseUrl: 'http://m',
      jobsUrl: 'http://m/',
    },
    auth: { username: 'alice', passwordFile: 'password' },
    watch: [{ job: 1 }],
  };
  const put = (into: object, name: string, value: unknown): object => {
    const [first = '', ...rest] = name.split('.');
    const inner = (into as Record<string, object>)[first] ?? {};
    const part = rest.length === 0 ? value : put(inner, rest.join('.'), value);
    return Array.isArray(into) ? into.with(Number(first), part) : { ...into, [first]: part };
  };
  const withFleet = { ...base, fleet: { urlFile: 'db' } };
  const around = (name: string): object => (name.startsWith('fleet') ? withFleet : base);
  const all = (values: readonly (readonly [string, unknown])[]) =>
    load(JSON.stringify(values.reduce((into, [name, value]) => put(into, name, value), around('fleet'))));
  await all(Object.entries(NUMBERS).map(([name, [smallest]]) => [name, smallest]));
  await all(Object.entries(NUMBERS).map(([name, [, largest]]) => [name, largest]));
  await all(Object.entries(LENGTHS).map(([name, length]) => [name, 'a'.repeat(length)]));
  for (const mode of ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'])
    await all([['fleet', { url: `postgresql://db.example.org/jobtail?sslmode=${mode}` }]]);
  const path = (length: number) => `/${'a'.repeat(length - 1)}`;
  await load(
    JSON.stringify(Object.entries(PATHS).reduce((into, [name, length]) => put(into, name, path(length)), base)),
  );
  const beyond = [
    ...Object.entries(NUMBERS).flatMap(([name, [smallest, largest, step]]) => [
      [name, smallest - step] as const,
      [name, largest + step] as const,
    ]),
    ...Object.entries(LENGTHS).map(([name, length]) => [name, 'a'.repeat(length + 1)] as const),
    ...Object.entries(PATHS).map(([name, length]) => [name, path(length + 1)] as const),
  ];
  for (const [name, value] of beyond) {
    const { message } = await refusal(JSON.stringify(put(around(name), name, value)));
    expect(message, `${name} ${value}`).toContain(`${name.replace('.0', '[0]')}: expected`);
  }
});

it('anything at all is a configuration or a JobtailError of the code config', async () => {
  const sectionNames = 'service auth mirror state poll results watch watchMine fleet logging metrics view'.split(' ');
  const keys = ['method', 'tls', 'job', 'tasks', 'files', 'directory', 'minIntervalSeconds', 'passwordCommand'];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, true, 0, -1, 1.5, '', 'x', 'stdout'),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(fc.constantFrom(...sectionNames, ...keys), fc.string()), tie('tree'), { maxKeys: 4 }),
    ),
  }));
  const sections = fc.dictionary(fc.constantFrom(...sectionNames), tree, { maxKeys: 11 });
  await fc.assert(
    fc.asyncProperty(fc.oneof(sections, tree), async (value) => {
      expect((await refusal(JSON.stringify(value))).code).toBe('config');
    }),
    numRuns(100),
  );
});
