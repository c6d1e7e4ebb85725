/** Errors of the connection to a server, as codes of the error table. */
import { errors } from 'undici';
import { JobtailError } from '../../errors.ts';
import { safeText } from '../../redact.ts';

export interface Target {
  readonly host: string;
  readonly port: string;
}

export function addressOf(target: Target): string {
  return `${target.host}:${target.port}`;
}

const UNREACHABLE: Readonly<Record<string, string>> = {
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name server did not answer',
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'no way to the host',
  ENETUNREACH: 'no way to the network',
  EHOSTDOWN: 'the host is down',
  ENETDOWN: 'the network is down',
  EADDRNOTAVAIL: 'the address cannot be used',
  EACCES: 'the connection is not allowed',
  EPERM: 'the connection is not allowed',
  EINVAL: 'the address cannot be used',
};

const INTERRUPTED = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]);

/** Texts of OpenSSL for an untrusted certificate, besides those that begin with CERT_ or ERR_. */
const CERTIFICATE =
  /^(CERT_|CRL_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_|EPROTO$)/;

const ROOT_CA_HINT = 'put the root CA into service.tls.caFile, too: an intermediate CA alone is not enough';

/** The JobtailError for a failure of undici. Without `cause`: it may contain raw bytes, even a session code. */
export function describeFailure(thrown: unknown, target: Target): JobtailError {
  if (thrown instanceof JobtailError) return thrown;
  const code = codeOf(thrown);
  const address = addressOf(target);
  const unreachable = UNREACHABLE[code];
  if (unreachable !== undefined) {
    return new JobtailError('unreachable', `${address} cannot be reached: ${unreachable} (${code})`, {
      hint: 'check the address in the configuration, the network and the service',
    });
  }
  if (code === 'ETIMEDOUT' || code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new JobtailError('timeout', `${address} did not accept a connection in time`, {
      hint: 'check the address in the configuration, the network and the firewall',
    });
  }
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new JobtailError('timeout', `${address} did not start to respond in time`, {
      hint: 'the service is slow or hangs; raise service.timeoutSeconds if it always needs longer',
    });
  }
  if (INTERRUPTED.has(code)) {
    return new JobtailError('interrupted', `the connection to ${address} broke before the answer was complete`, {
      hint: 'if it persists: the port may want https://, a firewall or proxy may cut it, or it may want a client certificate',
    });
  }
  if (thrown instanceof Error && /wrong version number/i.test(thrown.message)) {
    return new JobtailError('tls', `no secure connection to ${address}: it does not speak TLS (${code})`, {
      hint: 'use http:// at this port, or the port of https://',
    });
  }
  if (CERTIFICATE.test(code)) {
    // Names in a certificate come from the server.
    const reason = safeText(thrown instanceof Error ? thrown.message : '', []);
    return new JobtailError('tls', `no secure connection to ${address}: ${reason} (${code})`, {
      hint:
        code === 'UNABLE_TO_GET_ISSUER_CERT'
          ? ROOT_CA_HINT
          : 'check the host name in the address, the clock of this machine, and the files of service.tls',
    });
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || thrown instanceof errors.HTTPParserError) {
    return new JobtailError('malformed', `the answer of ${address} is not proper HTTP`, {
      hint: 'the address may belong to another kind of service',
    });
  }
  return describeRest(thrown, code, address);
}

function describeRest(thrown: unknown, code: string, address: string): JobtailError {
  if (code === 'UND_ERR_ABORTED' || code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED') {
    // undici also reports a refused tunnel as an abort.
    const refused = thrown instanceof Error ? /^Proxy response \((\d{1,3})\)/.exec(thrown.message) : null;
    if (refused === null) return new JobtailError('aborted', 'the call was stopped');
    return new JobtailError('unreachable', `the proxy refused to connect to ${address} (status ${refused[1]})`, {
      hint: 'check service.proxy',
    });
  }
  if (thrown instanceof errors.InvalidArgumentError && thrown.message.startsWith('Proxy Authentication')) {
    return new JobtailError('unreachable', `the proxy wants a sign-in to reach ${address} (status 407)`, {
      hint: 'check service.proxy, and write user:password into the file that service.proxyUserFile names',
    });
  }
  // The parser of HTTP is WebAssembly, for which Node.js reserves 10 GB of addresses.
  if (thrown instanceof Error && thrown.message.startsWith('WebAssembly')) {
    return new JobtailError('local-io', `no call to ${address}: this process may not reserve enough virtual memory`, {
      hint: 'set NODE_OPTIONS=--disable-wasm-trap-handler, or raise the limit (ulimit -v unlimited)',
    });
  }
  return new JobtailError('interrupted', `the call to ${address} failed: ${code === '' ? wordsOf(thrown) : code}`, {
    hint: 'it is retried; if the error persists, check the network and the log of the service',
  });
}

/** An error without a code is of this process: it quotes no response. */
function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? safeText(`${thrown.name}: ${thrown.message}`, []) : 'without an error message';
}

function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return '';
  const code = (thrown as NodeJS.ErrnoException).code;
  if (code === 'UND_ERR_PRX_TLS' && thrown.cause !== undefined) return codeOf(thrown.cause);
  if (typeof code === 'string') return code;
  return thrown instanceof AggregateError ? codeOf(thrown.errors.at(-1)) : '';
}
