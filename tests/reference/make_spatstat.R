# Make spatstat.json: summary functions, tests and fits of five synthetic layouts by the R package spatstat.
#
#     Rscript tests/reference/make_spatstat.R tests/reference/spatstat.json
#
# The layouts are drawn here too, and written beside the numbers. Lengths are in metres. Overlap areas for the
# translation correction are exact polygon overlaps; Kest and pcf of spatstat read theirs from a pixel image.

suppressMessages({ library(spatstat); library(jsonlite) })
target <- commandArgs(trailingOnly = TRUE)[1]
spatstat.options(npixel = 1024)

square <- owin(c(0, 1000), c(0, 1000))
bay <- owin(poly = list(x = c(0, 3000, 3000, 2100, 1500, 900, 0), y = c(0, 0, 2500, 2500, 600, 2500, 2500)))
holed <- owin(poly = list(
  list(x = c(0, 2000, 2300, 400), y = c(0, 0, 1800, 2000)),
  list(x = c(600, 900, 1500, 1200), y = c(500, 1400, 1200, 400)),
  list(x = c(2600, 3300, 2900), y = c(200, 300, 1500))
))

set.seed(20)
layouts <- list(
  square = runifpoint(40, square),
  bay = rThomas(4e-6, 180, 8, win = bay),
  holed = rSSI(110, 60, win = holed),
  small = runifpoint(9, bay),
  square_regular = rSSI(90, 40, win = square)
)

rings <- function(w) lapply(as.polygonal(w)$bdry, function(p) cbind(p$x, p$y))

study <- function(X) {
  area <- area(Window(X)); n <- npoints(X); spacing <- sqrt(area / n)
  top <- min(diff(Window(X)$xrange), diff(Window(X)$yrange), sqrt(area)) / 4
  fine <- seq(0, top, length.out = 1025); keep <- seq(65, 1025, by = 64); r <- fine[keep]
  at <- function(f, column) { v <- f[[column]][keep]; v[!is.finite(v)] <- NA; v }
  pairs <- closepairs(X, top)
  weight <- edge.Trans(X[pairs$i], X[pairs$j], paired = TRUE, exact = TRUE, trim = 300)
  K <- Kest(X, r = fine, correction = c("translate", "border"), nlarge = Inf)
  G <- Gest(X, r = fine, correction = c("km", "rs"))
  # empty space on the pixels of a fine mask, so that distances are known to about a metre
  F <- Fest(X, r = fine, correction = c("km", "rs"), eps = sqrt(area) / 700)
  g <- pcf(X, r = fine, correction = "translate", divisor = "d", stoyan = 0.15)
  list(
    window = rings(Window(X)), xy = cbind(X$x, X$y), area_m2 = area, perimeter_m = perimeter(Window(X)), r_m = r,
    K_translation = sapply(r, function(s) sum(weight[pairs$d <= s]) * area / (n * (n - 1))),
    K_translation_pixels = at(K, "trans"), K_border = at(K, "border"),
    G_kaplan_meier = at(G, "km"), G_border = at(G, "rs"), F_kaplan_meier = at(F, "km"), F_border = at(F, "rs"),
    g = at(g, "trans"), bandwidth_m = 0.15 * spacing,
    clark_evans = as.list(clarkevans(X, correction = if (is.rectangle(Window(X))) c("none", "Donnelly", "cdf") else c("none", "cdf")))
  )
}

fit <- function(f, X) {
  K <- Kest(X, r = seq(0, 500, length.out = 501), correction = "translate")
  m <- f(K, lambda = intensity(X), q = 1 / 2, p = 2, rmin = 0, rmax = 500)
  c(as.list(m$modelpar), list(objective = m$opt$value))
}

# Rounded before they are used, so that the tests have seen what is stored.
stored <- lapply(1:39, function(i) { X <- runifpoint(40, square); round(cbind(X$x, X$y), 2) })
drawn <- lapply(stored, function(a) ppp(a[, 1], a[, 2], window = square))
ask <- function(test, X) {
  a <- test(X, Lest, correction = "translate", nsim = 39, simulate = drawn, use.theory = FALSE, verbose = FALSE,
            rinterval = c(0, 250), r = seq(0, 250, by = 2.5))
  list(p_value = a$p.value, statistic = unname(a$statistic[[1]]))
}
asked <- function(X) list(dclf = ask(dclf.test, X), mad = ask(mad.test, X))

# beta-Ginibre layouts, independently of spatstat: eigenvalues of complex Gaussian matrices, thinned, in a disc.
ginibre <- function(density, beta, radius) {
  scale <- sqrt(pi * density / beta); n <- floor((radius * scale + 4)^2)
  z <- eigen(matrix(complex(real = rnorm(n^2), imaginary = rnorm(n^2)) / sqrt(2), n), only.values = TRUE)$values
  z <- z[runif(n) < beta] / scale
  z <- z[Mod(z) < radius]
  round(cbind(Re(z), Im(z)), 2)
}
set.seed(21)
repelled <- list(density_per_m2 = 1e-4, beta = 0.9, radius_m = 450, xy = lapply(1:20, function(i) ginibre(1e-4, 0.9, 450)))

apart <- seq(20, 400, by = 20)
gauss <- dppGauss(lambda = 1e-5, alpha = 150, d = 2)
thomas <- spatstat.random::spatstatClusterModelInfo("Thomas")
matern <- spatstat.random::spatstatClusterModelInfo("MatClust")
numbers <- list(
  source = "tests/reference/make_spatstat.R",
  versions = list(R = as.character(getRversion()), spatstat = as.character(packageVersion("spatstat")),
                  spatstat.explore = as.character(packageVersion("spatstat.explore")),
                  spatstat.random = as.character(packageVersion("spatstat.random")),
                  spatstat.model = as.character(packageVersion("spatstat.model"))),
  layouts = lapply(layouts, study),
  thomas_fit = fit(thomas.estK, layouts$bay), matern_cluster_fit = fit(matclust.estK, layouts$bay),
  drawn = stored,
  ginibre = repelled,
  tests = list(square = asked(layouts$square), square_regular = asked(layouts$square_regular)),
  models = list(
    r_m = apart,
    thomas = list(parents_per_m2 = 5e-6, spread_m = 90, K = thomas$K(c(5e-6, 90^2), apart), g = thomas$pcf(c(5e-6, 90^2), apart)),
    matern_cluster = list(parents_per_m2 = 5e-6, radius_m = 130, K = matern$K(c(5e-6, 130), apart), g = matern$pcf(c(5e-6, 130), apart)),
    gauss = list(density_per_m2 = 1e-5, alpha_m = 150, K = Kmodel(gauss)(apart), g = pcfmodel(gauss)(apart))
  )
)
writeLines(toJSON(numbers, digits = I(10), auto_unbox = TRUE, na = "null"), target)
