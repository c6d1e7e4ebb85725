/** Types of configuration values. The message of each issue is what src/config/load.ts expects. */
import { isAbsolute, resolve } from 'node:path';
import { type Issue, isNotEmpty, isSection, isString, listOf, Type, typeOf } from '../value-type.ts';

const anything = new Type((found) => found);

/** Converts a value; `read` returns undefined for an invalid one. */
function readAs<Found, Value>(type: Type<Found>, expected: string, read: (found: Found) => Value | undefined) {
  return type.transform((found, issues) => {
    const value = read(found);
    if (value === undefined) issues.push({ path: [], expected });
    return value as Value;
  });
}

export const orNull = <Value>(inner: Type<Value>) => inner.nullable().prefault(null);

/** A section that may be missing, or empty because all its keys are commented out. */
export const orEmpty = <Value>(inner: Type<Value>) => inner.after((found) => found ?? {});

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
export function withRule<Keys>(inner: Type<Keys>, check: (keys: Partial<Keys>, report: Report) => void): Type<Keys> {
  const read = (from: unknown, issues: Issue[]) => {
    const keys = inner.read(from, issues);
    if (typeof keys === 'object' && keys !== null)
      check(keys, (expected, path = [], found = undefined) => void issues.push({ path, expected, found }));
    return keys;
  };
  return new Type(read, inner.parts);
}

export function requireOne(keys: readonly string[], given: readonly string[], report: Report, what = ''): void {
  if (given.length === 1) return;
  report(`exactly one of ${keys.join(', ')}${what}`, [], given.length === 0 ? 'none of them' : given.join(' and '));
}

const isNumber = (found: unknown): found is number => Number.isFinite(found);

export const wholeNumber = (min: number, max: number) => wholeFrom(min, max, `a whole number from ${min} to ${max}`);

const wholeFrom = (min: number, max: number, expected: string) =>
  typeOf(
    (found): found is number => Number.isSafeInteger(found) && min <= Number(found) && Number(found) <= max,
    expected,
  );

const UNIT_MS = { seconds: 1000, minutes: 60_000, days: 86_400_000 } as const;

/** One millisecond up to `max` units; becomes milliseconds. */
export function duration(unit: keyof typeof UNIT_MS, max: number) {
  const expected = `a number of ${unit} above 0, at most ${max}`;
  const unitMs = UNIT_MS[unit];
  const units = typeOf(isNumber, expected).refine((found) => found >= 1 / unitMs && found <= max, expected);
  return units.transform((found) => Math.round(found * unitMs));
}

export function size(min: number, max: number) {
  const expected = `a number of bytes from ${min} to ${max}, or a size such as "512 MiB"`;
  const whole = wholeFrom(min, max, expected);
  return whole.after((found) => {
    if (!isString(found)) return found;
    const [, digits, prefix, binary] = /^([0-9]+(?:\.[0-9]+)?) ?(?:(?:([kmgt])(i)?)?b)?$/i.exec(found) ?? [];
    const power = prefix === undefined ? 0 : 1 + 'kmgt'.indexOf(prefix.toLowerCase());
    const factor = (binary === undefined ? 1000 : 1024) ** power;
    return digits === undefined ? found : Math.round(Number(digits) * factor);
  });
}

export const trueOrFalse = () => typeOf((found) => typeof found === 'boolean', 'true or false');

const isText = (found: string) => found !== '' && !/\p{Cc}/u.test(found);

export const A_TEXT = 'a text that is not empty';

/** One line, not empty. */
export function text(expected = A_TEXT, accepts: (found: string) => boolean = () => true) {
  return typeOf(isString, expected).refine((found) => isText(found) && accepts(found), expected);
}

export const credentialName = () => text('the name of a systemd credential', (found) => !/^\.{1,2}$|\//.test(found));

export function id<Id extends string>(what: string, parse: (found: unknown) => Id | undefined) {
  const expected = `${what}: a whole number of at most 64 bits`;
  return readAs(anything, expected, parse);
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
  const isFine = (pairs: object): pairs is Readonly<Record<string, string>> =>
    Object.entries(pairs).every(([there, here]) => there.startsWith('/') && isString(here) && isText(here));
  return readAs(anything, expected, (found) => {
    if (!isSection(found) || !isFine(found)) return undefined;
    return Object.fromEntries(Object.entries(found).map(([there, here]) => [there, resolve(directory, here)]));
  });
}

/** A list of words. A program with a slash is a path, others are searched in PATH. */
export function command(directory: string) {
  const words = listOf(text('a text (put it in quotes)'), 'texts: the program and its arguments, without a shell');
  return words.refine(isNotEmpty, 'at least the name of a program').transform(([program = '', ...args]) => {
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
