/** Types of configuration values. The message of each issue is what src/config/load.ts expects. */
import { isAbsolute, resolve } from 'node:path';
import * as z from 'zod';

/** Converts a value; `read` returns undefined for an invalid one. */
function readAs<Found, T>(schema: z.ZodType<Found>, expected: string, read: (found: Found) => T | undefined) {
  return schema.transform((found, context): T => {
    const result = read(found);
    if (result !== undefined) return result;
    context.issues.push({ code: 'custom', message: expected, input: found });
    return z.NEVER;
  });
}

export const orNull = <Value extends z.ZodType>(inner: Value) => inner.nullable().prefault(null);

/** A section with exactly these keys. The message of its unknown-keys issue is the list of the known ones. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? Object.keys(shape).join(', ') : 'a section (keys with their values)',
  });
}

/** A section that may be missing, or empty because all its keys are commented out. */
export function orEmpty<Section extends z.ZodType>(inner: Section) {
  return z.preprocess((found) => found ?? {}, inner).prefault({});
}

/** Renames durations, which are milliseconds after parsing. */
export function inMs<Values extends object>(section: Values): InMs<Values> {
  const entries = Object.entries(section).map(([key, found]) => [
    key.replace(/(?:Seconds|Minutes|Days)$/, 'Ms'),
    found,
  ]);
  return Object.fromEntries(entries) as InMs<Values>;
}

type InMs<Values> = {
  [Key in keyof Values as Key extends `${infer Name}${'Seconds' | 'Minutes' | 'Days'}`
    ? `${Name}Ms`
    : Key]: Values[Key];
};

/** Reports what is expected at a path of the section, and what is found there if the value does not show it. */
export type Report = (expected: string, path?: readonly PropertyKey[], found?: unknown) => void;

/** A rule between keys. It gets the readable part, even after errors, so that all errors are reported at once. */
export function withRule<Keys>(inner: z.ZodType<Keys>, check: (keys: Partial<Keys>, report: Report) => void) {
  return inner.superRefine(
    (keys, context) =>
      check(keys, (message, path = [], found = undefined) =>
        context.addIssue({ code: 'custom', path: [...path], message, params: { found } }),
      ),
    { when: ({ value }) => typeof value === 'object' && value !== null },
  );
}

export function requireOne(keys: readonly string[], given: readonly string[], report: Report, what = ''): void {
  if (given.length === 1) return;
  report(`exactly one of ${keys.join(', ')}${what}`, [], given.length === 0 ? 'none of them' : given.join(' and '));
}

export function listOf<Item extends z.ZodType>(item: Item, what: string) {
  return z.array(item, `a list of ${what}`);
}

export function wholeNumber(min: number, max: number) {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int(expected).min(min, expected).max(max, expected);
}

const UNIT_MS = { seconds: 1000, minutes: 60_000, days: 86_400_000 } as const;

/** One millisecond up to `max` units; becomes milliseconds. */
export function duration(unit: keyof typeof UNIT_MS, max: number) {
  const expected = `a number of ${unit} above 0, at most ${max}`;
  const unitMs = UNIT_MS[unit];
  const units = z
    .number(expected)
    .min(1 / unitMs, expected)
    .max(max, expected);
  return units.transform((found) => Math.round(found * unitMs));
}

export function size(min: number, max: number) {
  const expected = `a number of bytes from ${min} to ${max}, or a size such as "512 MiB"`;
  const written = readAs(z.string(expected), expected, (found) => {
    const [, digits, prefix, binary] = /^([0-9]+(?:\.[0-9]+)?) ?(?:(?:([kmgt])(i)?)?b)?$/i.exec(found) ?? [];
    const power = prefix === undefined ? 0 : 1 + 'kmgt'.indexOf(prefix.toLowerCase());
    const factor = (binary === undefined ? 1000 : 1024) ** power;
    return digits === undefined ? undefined : Math.round(Number(digits) * factor);
  });
  return z.union([z.number(), written], expected).pipe(z.int(expected).min(min, expected).max(max, expected));
}

export const trueOrFalse = () => z.boolean('true or false');

export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, `one of ${values.join(', ')}`);

const isText = (found: string) => found !== '' && !/\p{Cc}/u.test(found);

export const A_TEXT = 'a text that is not empty';

/** One line, not empty. */
export function text(expected = A_TEXT, accepts: (found: string) => boolean = () => true) {
  return z.string(expected).refine((found) => isText(found) && accepts(found), expected);
}

export const credentialName = () => text('the name of a systemd credential', (found) => !/^\.{1,2}$|\//.test(found));

export function id<Id extends string>(what: string, parse: (found: unknown) => Id | undefined) {
  const expected = `${what}: a whole number of at most 64 bits`;
  return readAs(z.union([z.string(), z.number(), z.bigint()], expected), expected, parse);
}

/** With one slash before it, and none at its end. */
export const slashed = (part: string) => `/${part}`.replaceAll(/\/{2,}/g, '/').replace(/\/$/, '');

export function path(directory: string) {
  const expected = 'a path (written in full: ~ is not expanded)';
  const isPlain = (found: string) => !/^~[a-z_]|^%[a-z]\/|^\$\w|\$\{/i.test(found);
  return text(expected, (found) => !/^~(\/|$)/.test(found))
    .refine(isPlain, 'a path (written in full: variables and names of users are not expanded)')
    .transform((found) => resolve(directory, found));
}

/** Paths of this machine by absolute paths of another one. */
export function pathPairs(directory: string) {
  const expected = 'paths of the server with paths of this machine, such as {/scratch: /mnt/scratch}';
  const isFine = (pairs: Readonly<Record<string, string>>) =>
    Object.entries(pairs).every(([there, here]) => there.startsWith('/') && isText(here));
  return readAs(z.record(z.string(), z.unknown(), expected), expected, (found) => {
    const pairs = z.record(z.string(), z.string()).safeParse(found).data;
    if (pairs === undefined || !isFine(pairs)) return undefined;
    return Object.fromEntries(Object.entries(pairs).map(([there, here]) => [there, resolve(directory, here)]));
  });
}

/** A list of words. A program with a slash is a path, others are searched in PATH. */
export function command(directory: string) {
  const words = listOf(text('a text (put it in quotes)'), 'texts: the program and its arguments, without a shell');
  return words.min(1, 'at least the name of a program').transform(([program = '', ...args]) => {
    const isRelativePath = program.includes('/') && !isAbsolute(program);
    return [isRelativePath ? resolve(directory, program) : program, ...args];
  });
}

export const AN_ADDRESS = 'an address that starts with http:// or https://, without a password in it';

/** Kept as written. Credentials are refused: they would be secrets in the file. */
export function httpUrl(expected = AN_ADDRESS) {
  return text(expected, (found) => {
    if (/\s/.test(found) || !URL.canParse(found)) return false;
    const url = new URL(found);
    return /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === '';
  });
}

/** `host:port`, an IPv6 host in brackets. Port 0: any free port. */
export function hostAndPort() {
  const expected = 'an address and a port such as 127.0.0.1:9464';
  return readAs(text(expected), expected, hostAndPortIn);
}

function hostAndPortIn(found: string): { readonly host: string; readonly port: number } | undefined {
  const [, v6, name, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/]+)):([0-9]{1,5})$/.exec(found) ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  return host !== undefined && port <= 65_535 ? { host, port } : undefined;
}

/** The limit of a socket path is 107 bytes; a server first creates it under a longer name. */
const MAX_SOCKET_PATH_BYTES = 90;

/** `host:port`, or the path of a Unix socket, which contains a slash. */
export function placeToListen(directory: string) {
  const expected = `an address and a port such as 127.0.0.1:9470, or the path of a Unix socket (at most ${MAX_SOCKET_PATH_BYTES} bytes)`;
  return readAs(text(expected), expected, (found) => {
    if (!found.includes('/')) return hostAndPortIn(found);
    const file = resolve(directory, found);
    return Buffer.byteLength(file) <= MAX_SOCKET_PATH_BYTES ? { path: file } : undefined;
  });
}
