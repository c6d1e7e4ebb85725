/** The section `fleet`: the database by which several agents share their jobs. */
import { hostname } from 'node:os';
import type * as z from 'zod';
import { EVEN_IF_OTHERS_FAIL, oneOf, path, section, text, trueOrFalse, value, wholeNumber } from './values.ts';

const URL_KEYS = ['url', 'urlFile', 'urlCredential'] as const;
/** A heartbeat that is shorter is refused by pg-boss. */
const SHORTEST_HEARTBEAT_SECONDS = 10;
const LONGEST_HEARTBEAT_SECONDS = 600;
/** pg-boss's schema beside it bears a longer name, and PostgreSQL cuts names of more than 63 bytes. */
const LONGEST_SCHEMA = 40;

/** The section for a configuration file in `directory`; null: this agent shares its jobs with nobody. */
export function fleetSection(directory: string) {
  const credential = text('the name of a systemd credential', (found) => !/^\.{1,2}$|\//.test(found));
  return section({
    /** Where the database is, without a password. */
    url: databaseUrl().nullable().prefault(null),
    /** Where the same is read from, with or without a password. */
    urlFile: path(directory).nullable().prefault(null),
    urlCredential: credential.nullable().prefault(null),
    /** Of this agent; no two of a fleet have the same. */
    name: text('a name of at most 63 letters, digits, dots, dashes and underscores', (found) =>
      /^[\w.-]{1,63}$/.test(found),
    )
      .nullable()
      .prefault(null)
      .transform(
        (name) =>
          name ??
          (hostname()
            .replaceAll(/[^\w.-]/g, '-')
            .slice(0, 63) ||
            'agent'),
      ),
    /** Jobs that this agent owns at a time. */
    mostJobs: wholeNumber(1, 100_000).prefault(2000),
    /** How long an agent may be silent until others take its jobs over. */
    heartbeatSeconds: wholeNumber(SHORTEST_HEARTBEAT_SECONDS, LONGEST_HEARTBEAT_SECONDS).prefault(15),
    schema: text(`a name of at most ${LONGEST_SCHEMA} small letters, digits and underscores`, (found) =>
      new RegExp(`^[a-z_][a-z0-9_]{0,${LONGEST_SCHEMA - 1}}$`).test(found),
    ).prefault('jobtail'),
    /** Whether a stop hands the jobs over, instead of leaving them to the next start of this agent for a heartbeat. */
    drainOnStop: trueOrFalse().prefault(false),
    /** Whether each agent has a mirror directory of its own: the next owner of a job reads everything again. */
    separateMirrors: trueOrFalse().prefault(false),
  })
    .superRefine((keys, context) => {
      const given = URL_KEYS.filter((key) => keys[key] !== null);
      if (given.length === 1) return;
      const found = given.length === 0 ? 'none of them' : given.join(' and ');
      context.addIssue({ code: 'custom', message: `exactly one of ${URL_KEYS.join(', ')}`, params: { found } });
    }, EVEN_IF_OTHERS_FAIL)
    .transform(({ heartbeatSeconds, ...keys }) => ({ ...keys, heartbeatMs: heartbeatSeconds * 1000 }));
}

export type FleetSettings = Readonly<z.output<ReturnType<typeof fleetSection>>>;

const TLS_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'] as const;

/** A password in it would be a secret in the file. */
function databaseUrl() {
  const expected =
    'an address such as postgresql://jobtail@db.example.org/jobtail?sslmode=verify-full, without a password in it';
  return value(expected, (found) => (typeof found === 'string' && isDatabaseUrl(found) ? found : undefined));
}

function isDatabaseUrl(text: string): boolean {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return false;
  const { protocol, password, searchParams, hash } = new URL(text);
  const mode = searchParams.get('sslmode');
  const isKnownMode = mode === null || oneOf(TLS_MODES).safeParse(mode).success;
  return (
    /^postgres(?:ql)?:$/.test(protocol) &&
    password === '' &&
    !searchParams.has('password') &&
    hash === '' &&
    isKnownMode
  );
}
