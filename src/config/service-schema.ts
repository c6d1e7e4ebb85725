/** The section `service`: the addresses of the service and its limits; some defaults depend on the protocol. */
import * as z from 'zod';
import type { AuthSettings } from '../auth.ts';
import { DEFAULT_PATH, SIGN_IN_PATHS } from '../remote/rest/contract.ts';
import {
  duration,
  EVEN_IF_OTHERS_FAIL,
  httpUrl,
  inMs,
  oneOf,
  orEmpty,
  orNull,
  path,
  section,
  slashed,
  text,
  wholeNumber,
} from './values.ts';

const PROTOCOLS = ['soap', 'rest'] as const;
const SOAP_VERSIONS = ['1.1', '1.2'] as const;
const DAY_SECONDS = 86_400;

/** Some REST releases share one connection among the calls of a user (docs/dev/rest.md 4.5). */
const CONCURRENCY = { soap: 4, rest: 1 } as const;
/** With a long round trip, unless `concurrency` is set: 16 for results, and one for polls. */
const MAX_CONCURRENCY = { soap: 17, rest: 1 } as const;

const ONLY_OF = { soap: ['fileTransferUrl', 'namespace', 'jobsUrl', 'soapVersion'], rest: ['path'] } as const;

const EXPECTED_URL = 'an address that starts with http:// or https://, without a password in it';
const EXPECTED_TEXT = 'a text that is not empty';
const EXPECTED_PATH = 'a path such as /heappe';

export function serviceSection(directory: string) {
  const file = () => orNull(path(directory));
  const tls = section({ caFile: file(), certFile: file(), keyFile: file() }).superRefine((files, context) => {
    const [missing, given] = files.certFile === null ? ['certFile', files.keyFile] : ['keyFile', files.certFile];
    if (typeof given === 'string' && (files.certFile === null || files.keyFile === null)) {
      context.addIssue({ code: 'custom', path: [missing], message: 'a path (certFile and keyFile go together)' });
    }
  }, EVEN_IF_OTHERS_FAIL);
  return section({
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
    path: z
      .string(EXPECTED_PATH)
      .regex(/^[^\s?#\p{Cc}]*$/u, EXPECTED_PATH)
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
  })
    .superRefine(checkProtocol, EVEN_IF_OTHERS_FAIL)
    .refine(({ proxy, proxyUserFile }) => proxy !== null || proxyUserFile === null, {
      path: ['proxyUserFile'],
      error: 'no such key without proxy',
    })
    .transform(({ protocol, concurrency: set, ...keys }) => {
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
  return z.union([z.string(), z.number()], expected).transform(String).pipe(z.enum(SOAP_VERSIONS, expected));
}

type ServiceKeys = {
  readonly protocol: (typeof PROTOCOLS)[number];
  readonly baseUrl: unknown;
} & { readonly [Key in (typeof ONLY_OF)[keyof typeof ONLY_OF][number]]?: unknown };

/** Called with the readable part of the section, even after errors. */
function checkProtocol(keys: ServiceKeys, context: z.core.$RefinementCtx<unknown>): void {
  const protocol = PROTOCOLS.find((known) => known === keys.protocol);
  if (protocol === undefined) return;
  const report = (key: string, message: string, found?: unknown) =>
    context.addIssue({ code: 'custom', path: [key], message, params: { found } });
  const other = protocol === 'soap' ? 'rest' : 'soap';
  for (const key of ONLY_OF[other]) {
    if (keys[key] !== undefined) report(key, `no such key with the protocol ${protocol} (only ${other} has it)`);
  }
  if (protocol === 'soap' && keys.fileTransferUrl === undefined) report('fileTransferUrl', EXPECTED_URL);
  if (protocol === 'soap' && keys.namespace === undefined) report('namespace', EXPECTED_TEXT);
  if (protocol === 'rest' && keys.baseUrl === null) {
    report('baseUrl', 'the address of the middleware, which starts with http:// or https://');
  }
}

type Service = z.output<ReturnType<typeof serviceSection>>;

export function signInOf({ service, auth }: { readonly service: Service; readonly auth: AuthSettings }): AuthSettings {
  if (service.protocol === 'soap') return { ...auth, path: auth.path ?? '/service/UserAndLimitationManagement' };
  const [controller = '', operation = null] =
    auth.method in SIGN_IN_PATHS ? SIGN_IN_PATHS[auth.method as keyof typeof SIGN_IN_PATHS].split('/') : [];
  return { ...auth, path: auth.path ?? `${service.path}/${controller}`, operation: auth.operation ?? operation };
}
