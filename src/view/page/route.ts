/** The state of the page in the part of its address behind `#`: it can be bookmarked, sent and gone back to. */

export type Route =
  | { readonly page: 'jobs' }
  | { readonly page: 'service' }
  /** A search over all jobs. */
  | { readonly page: 'search'; readonly text: string; readonly regex: boolean }
  | LiveRoute
  | ResultsRoute;

export interface ResultsRoute {
  readonly page: 'results';
  readonly jobId: string;
  /** The result that is opened, exactly as listed. */
  readonly name?: string | undefined;
}

export interface LiveRoute {
  readonly page: 'live';
  readonly jobId: string;
  /** The files side by side; none: which one grew last. */
  readonly files: readonly OpenedFile[];
}

export interface OpenedFile {
  readonly taskId: string;
  readonly file: string;
  /** The byte that is shown first. */
  readonly at?: number | undefined;
  /** The last line of a marked range begins here. */
  readonly to?: number | undefined;
  /** `g` and a number: that generation, whether it grows or was rotated. Else the version of a former one. */
  readonly version?: string | undefined;
}

/** Anything else leads to the jobs. */
export function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [page, id = '', tab = 'live'] = path.split('/');
  const parameters = new URLSearchParams(query);
  if (page === 'service') return { page: 'service' };
  if (page === 'search')
    return { page: 'search', text: parameters.get('text') ?? '', regex: parameters.get('regex') === '1' };
  const jobId = /^[0-9]{1,20}$/.test(id) ? id : undefined;
  if (page !== 'job' || jobId === undefined) return { page: 'jobs' };
  if (tab === 'results') return { page: 'results', jobId, name: parameters.get('name') ?? undefined };
  return { page: 'live', jobId, files: parameters.getAll('file').flatMap(openedFile) };
}

export function hashOf(route: Route): string {
  switch (route.page) {
    case 'jobs':
      return '#/';
    case 'service':
      return '#/service';
    case 'search': {
      const query = new URLSearchParams({
        ...(route.text === '' ? {} : { text: route.text }),
        ...(route.regex ? { regex: '1' } : {}),
      });
      return `#/search${query.size === 0 ? '' : `?${query}`}`;
    }
    case 'results':
      return `#/job/${route.jobId}/results${route.name === undefined ? '' : `?${new URLSearchParams({ name: route.name })}`}`;
    case 'live': {
      const query = new URLSearchParams(route.files.map((file): [string, string] => ['file', fileText(file)]));
      return `#/job/${route.jobId}/live${query.size === 0 ? '' : `?${query}`}`;
    }
  }
}

/** `9001/stdout`, with `@4096` for a byte, `@4096-5000` for marked lines, `:VERSION` for a generation. */
export function fileText({ taskId, file, at, to, version }: OpenedFile): string {
  const bytes = at === undefined ? '' : `@${at}${to === undefined ? '' : `-${to}`}`;
  return `${taskId}/${file}${bytes}${version === undefined ? '' : `:${version}`}`;
}

const FILE = new RegExp(
  '^(?<taskId>[0-9]{1,20})/(?<file>[a-z]{1,20})(?:@(?<at>[0-9]{1,16})(?:-(?<to>[0-9]{1,16}))?)?' +
    '(?::(?<version>.{1,200}))?$',
);

/** What `fileText` wrote; nothing if it is none. */
export function openedFile(text: string): OpenedFile[] {
  const { taskId, file, at, to, version } = FILE.exec(text)?.groups ?? {};
  if (taskId === undefined || file === undefined) return [];
  const number = (digits: string | undefined) => (digits === undefined ? undefined : Number(digits));
  return [{ taskId, file, at: number(at), to: number(to), version }];
}
