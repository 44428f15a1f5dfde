// Numbers as they come from Python (two characters each), and numbers as people read them.
const codec = (() => {
  const ALPHABET = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).filter((c) => !'"\\<>&'.includes(c));
  const DIGIT = new Int16Array(128).fill(-1);
  ALPHABET.forEach((character, i) => (DIGIT[character.charCodeAt(0)] = i));
  const BASE = ALPHABET.length;
  const INFINITE = BASE * BASE - 1;
  const TOP = INFINITE - 1;

  // Code 0 is not a number, the last is infinite; on a logarithmic scale code 1 is zero.
  const value = (code, { low, high, log }) => {
    if (code === 0) return NaN;
    if (code === INFINITE) return Infinity;
    if (!log) return low + ((code - 1) / (TOP - 1)) * (high - low);
    return code === 1 ? 0 : low * (high / low) ** ((code - 2) / (TOP - 2));
  };
  const numbers = (text, scale) => {
    const found = new Float64Array(text.length / 2);
    for (let i = 0; i < found.length; i++)
      found[i] = value(DIGIT[text.charCodeAt(2 * i)] * BASE + DIGIT[text.charCodeAt(2 * i + 1)], scale);
    return found;
  };
  const digits = (text) => Array.from(text, (character) => DIGIT[character.charCodeAt(0)]);

  // ---- words; the same as geoedge.maps.words ----
  const round = (number, count) => {
    const [mantissa, exponent] = Math.abs(number).toExponential(count - 1).split("e");
    const power = Number(exponent);
    const sign = number < 0 ? "-" : "";
    if (power >= -4 && power < count) return sign + String(Number(Math.abs(number).toPrecision(count)));
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    return `${sign}${short}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  };
  const short = (number) => (Math.abs(number) < 999.5 ? round(number, 3) : number.toFixed(0));
  const seconds = (time) => {
    if (Number.isNaN(time)) return "–";
    if (!Number.isFinite(time)) return "unbounded";
    if (time < 1e-3) return time > 0 ? "below 1 ms" : "0 s";
    return time < 0.9995 ? `${round(time * 1e3, 3)} ms` : `${short(time)} s`;
  };
  const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–");
  const points = (difference) =>
    Number.isFinite(difference) ? `${difference < 0 ? "" : "+"}${(100 * difference).toFixed(1)} points` : "–";
  const rate = (number, unit) => (Number.isFinite(number) ? `${short(number)} ${unit}` : "–");
  const bytes = (number) => {
    const found = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, size]) => number >= size);
    return found ? `${round(number / found[1], 3)} ${found[0]}` : `${number.toFixed(0)} B`;
  };
  const clock = (time) => {
    const minutes = Math.round(time / 60);
    const two = (number) => String(number).padStart(2, "0");
    const days = Math.floor(minutes / 1440);
    const rest = minutes - 1440 * days;
    return `${two(Math.floor(rest / 60))}:${two(rest % 60)}${days ? ` +${days} d` : ""}`;
  };
  return { numbers, digits, seconds, percent, points, rate, bytes, clock, short };
})();
