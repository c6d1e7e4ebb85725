/** The section `service`: the addresses of the service and its limits; some defaults depend on the protocol. */
import type { AuthSettings } from '../auth.ts';
import { DEFAULT_PATH, SIGN_IN_PATHS } from '../remote/rest/contract.ts';
import { type Output, oneOf, section, typeOf } from '../value-type.ts';
import {
  A_TEXT,
  AN_ADDRESS,
  duration,
  httpUrl,
  inMs,
  orEmpty,
  orNull,
  path,
  slashed,
  text,
  wholeNumber,
  withRule,
} from './values.ts';

const PROTOCOLS = ['soap', 'rest'] as const;
const SOAP_VERSIONS = ['1.1', '1.2'] as const;
const DAY_SECONDS = 86_400;

/** Some REST releases share one connection among the calls of a user (docs/dev/rest.md 4.5). */
const CONCURRENCY = { soap: 4, rest: 1 } as const;
/** With a long round trip, unless `concurrency` is set: 16 for results, and one for polls. */
const MAX_CONCURRENCY = { soap: 17, rest: 1 } as const;

const ONLY_OF = { soap: ['fileTransferUrl', 'namespace', 'jobsUrl', 'soapVersion'], rest: ['path'] } as const;

const EXPECTED_PATH = 'a path such as /heappe';

export function serviceSection(directory: string) {
  const file = () => orNull(path(directory));
  const files = section({ caFile: file(), certFile: file(), keyFile: file() });
  const tls = withRule(files, ({ certFile, keyFile }, report) => {
    const expected = 'a path (certFile and keyFile go together)';
    if (certFile === null && typeof keyFile === 'string') report(expected, ['certFile']);
    if (keyFile === null && typeof certFile === 'string') report(expected, ['keyFile']);
  });
  const written = section({
    protocol: oneOf(PROTOCOLS).prefault('soap'),
    /** {file_transfer_url} of docs/dev/soap.md. */
    fileTransferUrl: httpUrl().optional(),
    /** {service_namespace} of docs/dev/soap.md. */
    namespace: text().optional(),
    /** {jobs_url} of docs/dev/soap.md; null if there is no such service. */
    jobsUrl: httpUrl().nullable().optional(),
    soapVersion: soapVersion().optional(),
    /** {base_url} of the sign-in, and of REST, without a slash at its end. */
    baseUrl: orNull(
      httpUrl()
        .refine((url) => !url.includes('?'), 'an address without a query (?...)')
        .transform((url) => url.replace(/\/+$/, '')),
    ),
    /** For REST: between `baseUrl` and the operations; starts with a slash or is empty. */
    path: typeOf(
      (found): found is string => typeof found === 'string' && /^[^\s?#\p{Cc}]*$/u.test(found),
      EXPECTED_PATH,
    )
      .transform(slashed)
      .optional(),
    concurrency: wholeNumber(1, 1000).optional(),
    /** Null: the measured share of the server. */
    requestsPerMinute: orNull(wholeNumber(1, 1_000_000)),
    /** Of one call without progress. */
    timeoutSeconds: duration('seconds', DAY_SECONDS).prefault(60),
    tls: orEmpty(tls),
    proxy: orNull(httpUrl()),
    /** `user:password`, on one line. */
    proxyUserFile: orNull(path(directory)),
    compression: oneOf(['auto', 'off']).prefault('auto'),
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
    if (protocol === 'rest' && below !== '' && keys.baseUrl?.endsWith(below))
      report(`an address without ${below}, which service.path adds`, ['baseUrl']);
  });
  return checked.transform(({ protocol, concurrency: set, ...keys }) => {
    const { fileTransferUrl = '', namespace = '', jobsUrl = null, soapVersion: version = '1.2', ...both } = keys;
    const { path: restPath = DEFAULT_PATH, baseUrl, ...others } = both;
    const concurrency = set ?? CONCURRENCY[protocol];
    const rest = inMs({ ...others, concurrency, maxConcurrency: set ?? MAX_CONCURRENCY[protocol] });
    return protocol === 'soap'
      ? { ...rest, protocol, fileTransferUrl, namespace, jobsUrl, soapVersion: version, baseUrl }
      : { ...rest, protocol, baseUrl: baseUrl ?? '', path: restPath };
  });
}

/** `soapVersion: 1.2` without quotes is a number in YAML. */
function soapVersion() {
  const expected = `"${SOAP_VERSIONS.join('" or "')}"`;
  return oneOf(SOAP_VERSIONS, expected).after((found) => (typeof found === 'number' ? String(found) : found));
}

type Service = Output<ReturnType<typeof serviceSection>>;

export function signInOf({ service, auth }: { readonly service: Service; readonly auth: AuthSettings }): AuthSettings {
  if (service.protocol === 'soap') return { ...auth, path: auth.path ?? '/service/UserAndLimitationManagement' };
  const [controller = '', operation = null] =
    auth.method in SIGN_IN_PATHS ? SIGN_IN_PATHS[auth.method as keyof typeof SIGN_IN_PATHS].split('/') : [];
  return { ...auth, path: auth.path ?? `${service.path}/${controller}`, operation: auth.operation ?? operation };
}
