"""Operations that combine the elements along dims: sums, scans, quantiles, histograms."""
