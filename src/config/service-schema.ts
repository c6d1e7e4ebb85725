/** The section `service`: the addresses of the service and its limits; some defaults depend on the protocol. */
import * as v from 'valibot';
import type { AuthSettings } from '../auth.ts';
import { DEFAULT_PATH, SIGN_IN_PATHS } from '../remote/rest/contract.ts';
import { ROWS, valuesOf } from '../remote/rest/releases.ts';
import {
  A_TEXT,
  AN_ADDRESS,
  duration,
  httpUrl,
  inMs,
  oneOf,
  orEmpty,
  orNull,
  path,
  refine,
  required,
  section,
  slashed,
  text,
  transform,
  wholeNumber,
  withRule,
} from './values.ts';

const PROTOCOLS = ['soap', 'rest'] as const;
const PROTOCOL = 'rest, as all releases of HEAppE Middleware have it, or soap (agent init detects it)';
const SOAP_VERSIONS = ['1.1', '1.2'] as const;
const DAY_SECONDS = 86_400;

/** What every REST release takes. */
const CONCURRENCY = { soap: 4, rest: Math.min(...valuesOf(ROWS.callsAtATime)) } as const;

const ONLY_OF = { soap: ['fileTransferUrl', 'namespace', 'jobsUrl', 'soapVersion'], rest: ['path'] } as const;

const PATH = 'a path such as /heappe';

export function serviceSection(directory: string) {
  const file = () => orNull(path(directory));
  const files = section({ caFile: file(), certFile: file(), keyFile: file() });
  const tls = withRule(files, ({ certFile, keyFile }, report) => {
    const expected = 'a path (certFile and keyFile go together)';
    if (certFile === null && typeof keyFile === 'string') report(expected, ['certFile']);
    if (keyFile === null && typeof certFile === 'string') report(expected, ['keyFile']);
  });
  const withoutQuery = refine(httpUrl(), (url) => !url.includes('?'), 'an address without a query (?...)');
  const written = section({
    protocol: required(v.picklist(PROTOCOLS, PROTOCOL)),
    /** {file_transfer_url} of docs/dev/soap.md. */
    fileTransferUrl: v.optional(httpUrl()),
    /** {service_namespace} of docs/dev/soap.md. */
    namespace: v.optional(text()),
    /** {jobs_url} of docs/dev/soap.md; null if there is no such service. */
    jobsUrl: v.nullish(httpUrl()),
    soapVersion: v.optional(soapVersion()),
    /** {base_url} of the sign-in, and of REST, without a slash at its end. */
    baseUrl: orNull(transform(withoutQuery, (url) => url.replace(/\/+$/, ''))),
    /** For REST: between `baseUrl` and the operations; starts with a slash or is empty. */
    path: v.optional(transform(v.pipe(v.string(PATH), v.regex(/^[^\s?#\p{Cc}]*$/u, PATH)), slashed)),
    concurrency: v.optional(wholeNumber(1, 1000)),
    /** Null: the measured share of the server. */
    requestsPerMinute: orNull(wholeNumber(1, 1_000_000)),
    /** Of one call without progress. */
    timeoutSeconds: v.optional(duration('seconds', DAY_SECONDS), 60),
    tls: orEmpty(tls),
    proxy: orNull(httpUrl()),
    /** `user:password`, on one line. */
    proxyUserFile: orNull(path(directory)),
    compression: v.optional(oneOf(['auto', 'off']), 'auto'),
  });
  const checked = withRule(written, (keys, report) => {
    if (keys.proxy === null && typeof keys.proxyUserFile === 'string')
      report('no such key without proxy', ['proxyUserFile']);
    const { protocol } = keys;
    const other = protocol === 'soap' ? 'rest' : protocol === 'rest' ? 'soap' : undefined;
    if (other === undefined) return;
    for (const key of ONLY_OF[other])
      if (keys[key] !== undefined) report(`no such key with the protocol ${protocol} (only ${other} has it)`, [key]);
    if (protocol === 'soap' && keys.fileTransferUrl === undefined) report(AN_ADDRESS, ['fileTransferUrl']);
    if (protocol === 'soap' && keys.namespace === undefined) report(A_TEXT, ['namespace']);
    if (protocol === 'rest' && keys.baseUrl === null)
      report('the address of the middleware, which starts with http:// or https://', ['baseUrl']);
    const { path: below = DEFAULT_PATH } = keys;
    if (protocol === 'rest' && below !== '' && typeof keys.baseUrl === 'string' && keys.baseUrl.endsWith(below))
      report(`an address without ${below}, which service.path adds`, ['baseUrl']);
  });
  return transform(checked, ({ protocol, concurrency: set, ...keys }) => {
    const { fileTransferUrl = '', namespace = '', jobsUrl = null, soapVersion: version = '1.2', ...both } = keys;
    const { path: restPath = DEFAULT_PATH, baseUrl, ...others } = both;
    const rest = inMs({ ...others, concurrency: set ?? CONCURRENCY[protocol] });
    return protocol === 'soap'
      ? { ...rest, protocol, fileTransferUrl, namespace, jobsUrl, soapVersion: version, baseUrl }
      : { ...rest, protocol, baseUrl: baseUrl ?? '', path: restPath };
  });
}

/** `soapVersion: 1.2` without quotes is a number in YAML. */
function soapVersion() {
  const expected = `"${SOAP_VERSIONS.join('" or "')}"`;
  const quoted = transform(v.unknown(), (found) => (typeof found === 'number' ? String(found) : found));
  return v.pipe(quoted, v.picklist(SOAP_VERSIONS, expected));
}

type ServiceSettings = v.InferOutput<ReturnType<typeof serviceSection>>;

export function signInOf({
  service,
  auth,
}: {
  readonly service: ServiceSettings;
  readonly auth: AuthSettings;
}): AuthSettings {
  if (service.protocol === 'soap') return { ...auth, path: auth.path ?? '/service/UserAndLimitationManagement' };
  const [controller = '', operation = null] =
    auth.method in SIGN_IN_PATHS ? SIGN_IN_PATHS[auth.method as keyof typeof SIGN_IN_PATHS].split('/') : [];
  return { ...auth, path: auth.path ?? `${service.path}/${controller}`, operation: auth.operation ?? operation };
}
