/** Errors of the connection to a server, as codes of the error table. */
import { errors } from 'undici';
import { JobtailError } from '../../errors.ts';
import { safeText } from '../../redact.ts';

export interface Target {
  readonly host: string;
  readonly port: string;
  /** Host and port of the proxy on the way to it. */
  readonly by?: string;
  /** Whether it is the proxy itself. */
  readonly isProxy?: boolean;
  /** Whether the connection to it is only being opened, so no request was sent. */
  readonly isOpening?: boolean;
}

/** A gateway may add many cookies and long policies to each response; the default of undici is 16 KiB. */
export const MAX_HEADER_BYTES = 64 * 1024;

export function addressOf({ host, port, by, isProxy = false }: Target): string {
  return `${isProxy ? 'the proxy ' : ''}${host}:${port}${by === undefined ? '' : ` through the proxy ${by}`}`;
}

const SLOW = 'the service or the way to it is slow; raise service.timeoutSeconds if it always needs longer';
const NOT_CONNECTED =
  'correct the address in the configuration, or have the firewall on the way let this connection through';

export const timeoutError = (target: Target, what: string) =>
  new JobtailError('timeout', `${addressOf(target)} ${what}`, { hint: SLOW });

/** No request was sent. */
export const notConnected = (target: Target, what = 'did not accept a connection in time') =>
  new JobtailError('unreachable', `${addressOf(target)} ${what}`, { hint: NOT_CONNECTED });

const NO_WAY = 'see the network of this machine (ip route, VPN): no way leads to this address';
const NOT_ALLOWED = 'allow the connection in the firewall of this machine, or in the sandbox of the unit';
const NO_ADDRESS = 'correct the address in the configuration: this machine cannot connect to it';

/** Why a server cannot be reached, and what to do. */
const UNREACHABLE: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ENOTFOUND: ['there is no such host', 'correct the host name in the configuration: the DNS has no such name'],
  EAI_AGAIN: ['the name server did not answer', 'see /etc/resolv.conf and the network of this machine'],
  ECONNREFUSED: ['connection refused', 'correct the port in the configuration, or have the server started'],
  EHOSTUNREACH: ['no way to the host', NO_WAY],
  ENETUNREACH: ['no way to the network', NO_WAY],
  EHOSTDOWN: ['the host is down', NO_WAY],
  ENETDOWN: ['the network is down', NO_WAY],
  EADDRNOTAVAIL: ['the address cannot be used', NO_ADDRESS],
  EACCES: ['the connection is not allowed', NOT_ALLOWED],
  EPERM: ['the connection is not allowed', NOT_ALLOWED],
  EINVAL: ['the address cannot be used', NO_ADDRESS],
};

const INTERRUPTED = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]);

/** Codes of OpenSSL for an untrusted certificate, and for a handshake that failed. */
const TLS =
  /^(CERT_|CRL_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_|EPROTO$)/;

const ROOT_CA_HINT = 'put the root CA into service.tls.caFile, too: an intermediate CA alone is not enough';
const CERTIFICATE_HINT =
  'compare the certificate with the host name, the clock of this machine, and the files of service.tls';

/** What the words of OpenSSL mean; `reason` in place of them. */
const HANDSHAKES: readonly { readonly codes: RegExp; readonly reason?: string; readonly hint: string }[] = [
  { codes: /^UNABLE_TO_GET_ISSUER_CERT$/, hint: ROOT_CA_HINT },
  {
    codes: /^(SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/,
    hint: 'put the root CA of the server into service.tls.caFile: it is none of the roots of this machine',
  },
  { codes: /ALTNAME_INVALID|HOSTNAME_MISMATCH/, hint: 'use a host name of the certificate in the address' },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    hint: 'set the clock of this machine by NTP: the certificate begins later',
  },
  {
    codes: /^CERT_HAS_EXPIRED$/,
    hint: 'have the certificate of the server renewed, unless the clock of this machine is ahead',
  },
  {
    codes: /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/,
    reason: 'it does not speak TLS',
    hint: 'use http:// at this port, or the port of https://',
  },
  {
    codes: /NO_APPLICATION_PROTOCOL/,
    reason: 'it speaks HTTP/2 alone, and the agent HTTP/1.1',
    hint: 'ask the operator of the server to allow HTTP/1.1, too',
  },
  {
    codes: /PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/,
    reason: 'it has no version of TLS from 1.2 on',
    hint: 'ask the operator of the server to switch on TLS 1.2',
  },
  {
    codes: /CERTIFICATE_REQUIRED|ALERT_BAD_CERTIFICATE/,
    reason: 'it wants a client certificate',
    hint: 'set service.tls.certFile and service.tls.keyFile to one that the server accepts',
  },
  {
    codes: /HANDSHAKE_FAILURE/,
    reason: 'it refused the handshake, as without a client certificate that it wants, or without a cipher in common',
    hint: 'set service.tls.certFile and service.tls.keyFile if it wants a certificate; else ask its operator',
  },
  {
    codes: /UNRECOGNIZED_NAME/,
    reason: 'it serves no such host name',
    hint: 'use the host name of the server in the address, not an alias or a number',
  },
];

/** The JobtailError for a failure of undici. Without `cause`: it may contain raw bytes, even a session code. */
export function describeFailure(thrown: unknown, target: Target): JobtailError {
  if (thrown instanceof JobtailError) return thrown;
  const code = codeOf(thrown);
  const address = addressOf(target);
  const isUnsent = target.isOpening === true;
  // Of an open connection: the request may have arrived.
  const isOpen =
    !isUnsent && thrown instanceof Error && 'syscall' in thrown && /^(read|write)$/.test(`${thrown.syscall}`);
  const unreachable = isOpen ? undefined : UNREACHABLE[code];
  if (unreachable !== undefined) {
    const [reason, hint] = unreachable;
    return new JobtailError('unreachable', `${address} cannot be reached: ${reason} (${code})`, { hint });
  }
  if (!isOpen && (code === 'ETIMEDOUT' || code === 'UND_ERR_CONNECT_TIMEOUT')) return notConnected(target);
  if (TLS.test(code)) return describeTls(thrown, code, address);
  const isHttp = !(thrown instanceof errors.HTTPParserError || code.startsWith('HPE_'));
  if (target.isProxy === true && (INTERRUPTED.has(code) || !isHttp)) {
    const what = isHttp ? 'closed the connection before it answered' : 'does not answer with HTTP';
    return new JobtailError('unreachable', `${address} ${what}`, {
      hint: `${CHECK_PROXY}: it may not open tunnels (CONNECT) to this server`,
    });
  }
  if (INTERRUPTED.has(code) || isOpen) {
    const when = isUnsent ? 'the request was sent' : 'the response was complete';
    const what = `the connection to ${address} broke before ${when}`;
    return new JobtailError(isUnsent ? 'unreachable' : 'interrupted', what, {
      hint: 'if it persists: the port may want https://, a firewall or proxy may cut it, or it may want a client certificate',
    });
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    const what = `the response of ${address} has more than ${MAX_HEADER_BYTES / 1024} KiB of headers`;
    return new JobtailError('malformed', what, {
      hint: 'let the gateway in front of the service send fewer cookies and shorter policies',
    });
  }
  if (!isHttp) {
    return new JobtailError('malformed', `the response of ${address} is not proper HTTP/1.1`, {
      hint: 'the address may belong to another kind of service',
    });
  }
  return describeRest(thrown, code, address);
}

const CHECK_PROXY = 'correct the address of the proxy in the configuration, or ask those who run it';

function describeTls(thrown: unknown, code: string, address: string): JobtailError {
  const message = thrown instanceof Error ? thrown.message : '';
  const words = code === 'EPROTO' ? message.toUpperCase().replaceAll(' ', '_') : code;
  const known = HANDSHAKES.find(({ codes }) => codes.test(words));
  // Names in a certificate come from the server.
  const reason = known?.reason ?? safeText(message, []);
  return new JobtailError('tls', `no secure connection to ${address}: ${reason} (${code})`, {
    hint: known?.hint ?? CERTIFICATE_HINT,
  });
}

/** A proxy wants a sign-in (407), or does not open a tunnel to the server. */
export function proxyRefusal(target: Target, status: number, schemes: readonly string[] | string = []): JobtailError {
  const { host, port, by } = target;
  const offered = [schemes].flat().map((scheme) => /^[\w-]*/.exec(scheme.trim())?.[0] ?? '');
  const others = offered.some((scheme) => /^basic$/i.test(scheme)) ? '' : offered.join(', ');
  if (status === 407) {
    const hint =
      others === ''
        ? 'write user:password into the file that service.proxyUserFile names'
        : `the agent signs in by Basic alone, and the proxy offers ${others}: ask those who run it for Basic`;
    return new JobtailError('unreachable', `the proxy ${by} wants a sign-in to reach ${host}:${port} (status 407)`, {
      hint,
    });
  }
  const what = `the proxy ${by} refused to connect to ${host}:${port} (status ${status})`;
  const isUnusualPort = status === 403 && port !== '443';
  return new JobtailError('unreachable', what, {
    hint: isUnusualPort
      ? `most proxies open tunnels to port 443 alone: ask those who run it to allow port ${port}`
      : CHECK_PROXY,
  });
}

function describeRest(thrown: unknown, code: string, address: string): JobtailError {
  if (code === 'UND_ERR_ABORTED' || code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED' || code === 'ABORT_ERR')
    return new JobtailError('aborted', 'the call was stopped');
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
  if (typeof code === 'string') return code;
  return thrown instanceof AggregateError ? codeOf(thrown.errors.at(-1)) : '';
}
