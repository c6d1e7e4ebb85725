/** Time of the processor: on a busy machine, a limit of the wall clock is over before work has got its time. */

/** Milliseconds that this process has had, of all its threads. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
