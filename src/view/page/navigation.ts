/** The title of the page, and the steps by keys along lists. */
import { printable } from '../../printable.ts';
import { live } from './live.ts';
import { hashOf, type Route, routeOf } from './route.ts';

/** The shown pictures among the results of a job, in their order. */
let pictures: readonly string[] = [];

export function notePictures(names: readonly string[]): void {
  pictures = names;
}

/** `failed · 504 cfd wing · jobtail`. */
export function titleOf(route: Route): string {
  if (!('jobId' in route)) return route.page === 'jobs' ? 'jobtail' : `${route.page} · jobtail`;
  const job = live.details.value.get(route.jobId);
  if (job === undefined) return `${route.jobId} · jobtail`;
  return `${printable(job.jobState ?? job.state)} · ${job.jobId} ${printable(job.name ?? '')} · jobtail`;
}

/** Moves the focus to the next link of a list. The focus counts first: it moves before the list is drawn again. */
function step(selector: string, isBack: boolean): HTMLAnchorElement | undefined {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(selector)];
  const focused = links.indexOf(document.activeElement as HTMLAnchorElement);
  const current = focused < 0 ? links.findIndex((link) => link.ariaCurrent === 'true') : focused;
  const next = links[current < 0 ? 0 : current + (isBack ? -1 : 1)];
  next?.focus();
  return next;
}

export const stepJobRows = (isBack: boolean) => step('.job-link', isBack);
export const stepFiles = (isBack: boolean) => step('.file-link', isBack)?.click();

/** False if no picture is open, or it is the last one. */
export function stepPictures(isBack: boolean): boolean {
  const route = routeOf(location.hash);
  const at = route.page === 'results' ? pictures.indexOf(route.name ?? '') : -1;
  const name = at < 0 ? undefined : pictures[at + (isBack ? -1 : 1)];
  if (route.page === 'results' && name !== undefined) location.hash = hashOf({ ...route, name });
  return name !== undefined;
}
