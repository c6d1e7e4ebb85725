/** Looks up names in a program of its own: a resolver without an answer would hold one of two threads here. */
import dns from 'node:dns';
import net, { type LookupFunction } from 'node:net';
import { NotInstalled, printedBy } from './program.ts';

const LIMIT_MS = 10_000;
const MAX_BYTES = 64 * 1024;

/** Whether this host, as an address or within a URL, is this machine. */
export const isLoopback = (host: string) => /^(?:localhost|\[?::1\]?|127(?:\.\d+){3})$/.test(host);

/** The resolver of the system (`getent`), until the signal fires. */
export function lookupByProgram(signal: AbortSignal): LookupFunction {
  return (name, options, callback) => {
    const found = (addresses: readonly dns.LookupAddress[]) => {
      const wanted = addresses.filter(
        ({ family }) => ![4, 6].includes(Number(options.family)) || family === options.family,
      );
      const [first] = wanted;
      if (first === undefined) callback(notFound(name), []);
      else if (options.all === true) callback(null, [...wanted]);
      else callback(null, first.address, first.family);
    };
    const failed = (error: unknown) => {
      if (error instanceof NotInstalled) dns.lookup(name, options, callback as () => void);
      else callback(Object.assign(new Error(`no answer for ${name}`), { code: 'EAI_AGAIN' }), []);
    };
    addressesOf(name, signal).then(found, failed);
  };
}

async function addressesOf(name: string, signal: AbortSignal): Promise<dns.LookupAddress[]> {
  const limits = { maxBytes: MAX_BYTES, limit: { totalMs: LIMIT_MS }, signal };
  const { printed } = await printedBy({ command: 'getent', args: ['ahosts', '--', name], env: process.env, ...limits });
  // `192.0.2.7  STREAM name`, for each kind of socket.
  const addresses = new Set(printed.toString().match(/^\S+/gm));
  return [...addresses].flatMap((address) => (net.isIP(address) === 0 ? [] : [{ address, family: net.isIP(address) }]));
}

const notFound = (name: string) => Object.assign(new Error(`there is no ${name}`), { code: 'ENOTFOUND' });
